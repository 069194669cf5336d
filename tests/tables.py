"""The tables that the catalog names, emptied."""

# Ids start at 1 again.
EMPTY = """
    DO $$ BEGIN
        EXECUTE (SELECT 'TRUNCATE ' || string_agg(relname, ', ') || ' RESTART IDENTITY CASCADE' FROM pg_class
                 WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'alembic_version');
    END $$
"""
