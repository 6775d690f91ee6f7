"""What works on rows: Arrow, which is always there, and Polars, DuckDB and Spark, loaded when they are needed.

- `arrow`: tables in memory and Parquet files, read in batches
- `polars`, `duckdb`, `spark`: frames and relations of these libraries
"""
