"""The archive: full partitions whose time is over, as Parquet files that are proven like the books (decision 31).

All but `run` needs pyarrow, the extra `archive`, or is needed by what does.
"""
