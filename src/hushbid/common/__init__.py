"""What every part of the library uses: arrays, documents, files, money, numbers and tables; it knows no mechanism.

- `arrays`: columns of numbers that a caller passes, checked, and rows named in a refusal
- `adding`: figures about some rows that add up to those of all
- `numbers`: numbers as people read them
- `documents`, `codec`: strict JSON with one spelling for each document, and dataclasses as documents
- `column_files`: long lists of a document as columns of a Parquet file
- `durable`, `staging`: files that appear whole or not at all, and folders of them
- `money`: currencies, minor units and rounding
- `tables`: CSV, Parquet, Excel and data frames as columns
"""
