# The first start of PostgreSQL in Compose runs this: the service's role owns its schema, and nothing else.
psql --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
\getenv password POSTGRES_PASSWORD
\getenv backup BACKUP_PASSWORD
CREATE ROLE points LOGIN PASSWORD :'password';
ALTER SCHEMA public OWNER TO points;
-- An empty password lets nobody in.
CREATE ROLE backup LOGIN REPLICATION PASSWORD :'backup';
-- By the socket alone.
ALTER ROLE postgres PASSWORD NULL;
SQL
echo "host replication backup all scram-sha-256" >> "$PGDATA/pg_hba.conf"
