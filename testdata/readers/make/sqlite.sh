#!/bin/sh
# Databases with a schema of one page, of many pages, and in UTF-16.
set -eu
out=$2/binary
mkdir -p "$out"
rm -f "$out"/*.db
{
	echo "PRAGMA page_size=512; PRAGMA user_version=7;"
	echo "CREATE TABLE users(id integer primary key, name text); CREATE TABLE orders(id, total);"
	echo "CREATE VIEW adults AS SELECT name FROM users WHERE id > 17;"
} | sqlite3 "$out/one.db"
{
	echo "PRAGMA page_size=512;"
	i=0
	while [ $i -lt 120 ]; do echo "CREATE VIEW v$i AS SELECT $i;"; i=$((i + 1)); done
} | sqlite3 "$out/many.db"
echo "PRAGMA encoding='UTF-16le'; PRAGMA page_size=512; CREATE TABLE größen(größe text);" | sqlite3 "$out/wide.db"
