"""Files, frames and clusters: the only place that knows CSV, Parquet and whatever holds large populations."""
