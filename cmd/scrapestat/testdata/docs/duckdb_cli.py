# The command line of DuckDB, as much of it as the manual uses: -c SQL, or SQL on stdin.
import sys

import duckdb

text = sys.argv[2] if sys.argv[1:2] == ["-c"] else sys.stdin.read()
for statement in duckdb.extract_statements(text):
    relation = duckdb.sql(statement.query)
    if relation is not None:
        print(relation)
