#!/bin/sh
set -eu

target=${1:-/opt/shop}

prepare() {
    if [ ! -d "$target" ]; then
        mkdir -p "$target/etc"
        chmod 755 "$target"
    fi
    cat > "$target/etc/shop.conf" <<EOF
[server]
port = 8080
    # indented on purpose
workers = 4
EOF
    echo "configured $target"
}

fetch() {
    for part in core extra docs; do
        curl -fsS "https://dl.example/$part.tar.gz" | tar -xz -C "$target"
        echo "got $part"
    done
}

prepare
fetch
