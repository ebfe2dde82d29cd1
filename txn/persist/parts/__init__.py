"""Parts: immutable Parquet files, their sidecars and manifests."""
