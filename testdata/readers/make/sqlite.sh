#!/bin/sh
# A database.
set -eu
out=$2/binary
mkdir -p "$out"
rm -f "$out"/*.db
{
	echo "PRAGMA page_size=512; PRAGMA user_version=7;"
	echo "CREATE TABLE users(id integer primary key, name text); CREATE TABLE orders(id, total);"
	echo "CREATE VIEW adults AS SELECT name FROM users WHERE id > 17;"
} | sqlite3 "$out/one.db"
