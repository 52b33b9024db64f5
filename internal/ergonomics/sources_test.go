package ergonomics

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A source is a real file that is edited.
type source struct {
	name string // in the tree of a case
	lang string
	unit string // one level of indentation
	text string
}

// taken lists the files of the Go tree; their texts are not in this repository.
var taken = []struct{ path, lang, unit string }{
	{"src/encoding/csv/reader.go", "go", "\t"},
	{"src/net/textproto/reader.go", "go", "\t"},
	{"src/archive/tar/common.go", "go", "\t"},
	{"src/net/smtp/smtp.go", "go", "\t"},
	{"src/expvar/expvar.go", "go", "\t"},
	{"src/text/tabwriter/tabwriter.go", "go", "\t"},
	{"src/log/syslog/syslog.go", "go", "\t"},
	{"src/runtime/runtime-gdb.py", "py", "\t"},
	{"src/cmd/vendor/github.com/google/pprof/internal/driver/html/common.js", "js", "  "},
	{"src/cmd/vendor/github.com/google/pprof/internal/driver/html/stacks.js", "js", "  "},
	{"src/cmd/vendor/github.com/google/pprof/internal/driver/html/common.css", "css", "  "},
	{"src/cmd/vendor/github.com/google/pprof/internal/driver/html/header.html", "html", "  "},
	{"lib/wasm/wasm_exec.js", "js", "\t"},
	{"src/make.bash", "sh", "\t"},
	{"src/runtime/cgo/gcc_libinit.c", "c", "\t"},
	{"src/runtime/HACKING.md", "md", "\t"},
}

var sources = sync.OnceValues(func() (out []source, err error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	for _, f := range taken {
		b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), filepath.FromSlash(f.path)))
		if err != nil {
			return nil, err
		}
		out = append(out, source{filepath.Base(f.path), f.lang, f.unit, string(b)})
	}
	return append(out, own...), nil
})

func allSources(t *testing.T) []source {
	t.Helper()
	s, err := sources()
	if err != nil {
		t.Skip("SKIPPED: the Go tree is not there: ", err)
	}
	return s
}

// own are files written by hand, for what the Go tree has not.
var own = []source{
	{"queue.py", "py", "    ", queuePy},
	{"settings.py", "py", "    ", settingsPy},
	{"app.ts", "js", "  ", appTS},
	{"deploy.yaml", "yaml", "  ", deployYAML},
	{"setup.sh", "sh", "    ", setupSH},
	{"Shop.java", "c", "    ", shopJava},
	{"guide.md", "md", "    ", guideMD},
	{"Makefile", "make", "\t", makefile},
}

const makefile = `# Builds the shop and its tools.
CC ?= cc
CFLAGS = -O2 -Wall
OBJECTS = main.o orders.o report.o

.PHONY: all clean install

all: shop docs

shop: $(OBJECTS)
	$(CC) $(CFLAGS) -o $@ $(OBJECTS)
	strip $@

%.o: %.c shop.h
	@echo "compiling $<"
	$(CC) $(CFLAGS) -c $<

docs:
	mkdir -p build/docs
	for f in docs/*.md; do \
	  ./render "$$f" > "build/docs/$$(basename $$f .md).html"; \
	done

install: all
	install -d $(DESTDIR)/usr/bin
	install -m 755 shop $(DESTDIR)/usr/bin/shop
ifdef WITH_DOCS
	cp -r build/docs $(DESTDIR)/usr/share/doc/shop
endif

clean:
	rm -f shop $(OBJECTS)
	rm -rf build
`

const queuePy = `"""A queue that remembers what it gave out."""
import heapq
import logging
from itertools import count

log = logging.getLogger("queue")


class Queue:
    """Items by priority; equal ones in order of arrival."""

    def __init__(self, limit=128):
        self._heap = []
        self._arrivals = count()
        self.limit = limit
        self.given_out = {}

    def push(self, item, priority=0):
        if len(self._heap) >= self.limit:
            raise OverflowError("the queue is full: %d items" % self.limit)
        entry = (priority, next(self._arrivals), item)
        heapq.heappush(self._heap, entry)
        log.debug("pushed %r with priority %d", item, priority)

    def pop(self):
        while self._heap:
            priority, arrival, item = heapq.heappop(self._heap)
            if item not in self.given_out:
                self.given_out[item] = arrival
                return item
            log.warning("skipped a doubled item: %r", item)
        return None

    def rescore(self, weights):
        fresh = []
        for priority, arrival, item in self._heap:
            for name, weight in weights.items():
                if name in item:
                    priority += weight
                else:
                    priority -= 1
            fresh.append((priority, arrival, item))
        heapq.heapify(fresh)
        self._heap = fresh

    def describe(self):
        text = """Waiting:
  first: {first}
  total: {total}
"""
        return text.format(first=self._heap[:1], total=len(self._heap))

    def drain(self, sink, batch=16):
        done = 0
        while self._heap and done < batch:
            item = self.pop()
            if item is None:
                break
            try:
                sink.accept(item)
            except ValueError as err:
                log.error("sink refused %r: %s", item, err)
                continue
            done += 1
        return done
`

const settingsPy = `import json
import os.path


DEFAULTS = {
    "retries": 3,
    "timeout": 2.5,
    "hosts": ["alpha.example", "beta.example"],
    "greeting": "Hello -- and welcome",
}


def load(path, overrides=None):
    settings = dict(DEFAULTS)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as stream:
            settings.update(json.load(stream))
    for key, value in (overrides or {}).items():
        if key not in DEFAULTS:
            raise KeyError("unknown setting: " + key)
        settings[key] = value
    return settings


def save(path, settings):
    changed = {k: v for k, v in settings.items() if DEFAULTS.get(k) != v}
    tmp = path + ".new"
    with open(tmp, "w", encoding="utf-8") as stream:
        json.dump(changed, stream, indent=2, sort_keys=True)
        stream.write("\n")
    os.replace(tmp, path)
    return len(changed)


def usage(settings):
    if settings["retries"] < 1:
        print("it's of no use: 'retries' is too low")
        return False
    if settings["timeout"] > 60:
        print("it's slow ... try a smaller 'timeout'")
        return False
    return True
`

const appTS = "import { readFile } from 'node:fs/promises';\n" + `
export interface Order {
  id: string;
  items: Item[];
  note?: string;
}

interface Item {
  sku: string;
  count: number;
  price: number;
}

export function total(order: Order): number {
  let sum = 0;
  for (const item of order.items) {
    if (item.count <= 0) {
      throw new RangeError("bad count: " + item.sku);
    }
    sum += item.count * item.price;
  }
  return Math.round(sum * 100) / 100;
}

export async function loadOrders(path: string): Promise<Order[]> {
  const raw = await readFile(path, 'utf8');
  const parsed = JSON.parse(raw);
  if (!Array.isArray(parsed)) {
    throw new TypeError('expected a list of orders');
  }
  return parsed.filter((o) => o && o.items && o.items.length > 0);
}

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
};

export function render(order: Order): string {
  const rows = order.items.map((item) => {
    const label = item.sku.replace(/[&<>]/g, (c) => escapes[c]);
    return "<li class=\"item\">" + label + "</li>";
  });
  return "<ul>\n" + rows.join("\n") + "\n</ul>";
}
`

const deployYAML = `name: deploy
on:
  push:
    branches: [main]
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - name: Build
        run: |
          make clean
          make all VERSION="1.4.2"
      - name: Test
        run: make test
  publish:
    needs: build
    runs-on: ubuntu-latest
    environment:
      name: production
      url: https://shop.example
    steps:
      - name: Upload
        env:
          TOKEN: ${{ secrets.UPLOAD_TOKEN }}
          REGION: eu-central-1
        run: ./scripts/upload.sh "$REGION"
      - name: Notify
        if: failure()
        run: ./scripts/notify.sh 'the upload failed'
`

const setupSH = `#!/bin/sh
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
`

const shopJava = `package example.shop;

import java.util.ArrayList;
import java.util.List;

public class Shop {
    private final List<Order> orders = new ArrayList<>();
    private int lastNumber = 100;

    public Order open(String customer) {
        if (customer == null || customer.isEmpty()) {
            throw new IllegalArgumentException("a customer is needed");
        }
        Order order = new Order(++lastNumber, customer);
        orders.add(order);
        return order;
    }

    public List<Order> pending(int limit) {
        List<Order> found = new ArrayList<>();
        for (Order order : orders) {
            if (!order.isShipped() && found.size() < limit) {
                found.add(order);
            }
        }
        return found;
    }

    public double revenue() {
        double sum = 0;
        for (Order order : orders) {
            for (Line line : order.lines()) {
                sum += line.count() * line.price();
            }
        }
        return sum;
    }

    @Override
    public String toString() {
        return "Shop with " + orders.size() + " orders";
    }
}
`

const guideMD = `# A guide

The tool reads a folder, and writes a report. It's small -- about forty kilobytes -- and needs no server.

## Begin

1. Fetch the program from the page of releases.
2. Put it on your path.
3. Run ` + "`report init`" + ` in the folder.

The first run takes a while... be patient. Later ones look at what has changed, and no more.

## Questions

- *Can it read archives?* Not yet: "unpack them first" is what we say.
- *Where are the settings?* In ` + "`~/.report.toml`" + `, one key a line.
- *What does it cost?* Nothing -- it's free.

Write to us when something doesn't work. We answer within a week, most of the time.
`
