// What the engine lacks of the web's common ground, and fs. It runs before the script, keeps what it
// uses of the language in its closure, and gives to Go what settles promises and rings timers.
(function (call, write, sleep, atOnce, withFS) {
"use strict";
const O = Object, P = Promise, S = String, J = JSON, E = Error, T = TypeError, U = Uint8Array;
const { create, freeze, defineProperty, keys, getPrototypeOf, getOwnPropertyDescriptor } = O;
const uncurry = (f) => f.call.bind(f);
const has = uncurry(O.prototype.hasOwnProperty), tagOf = uncurry(
  getOwnPropertyDescriptor(getPrototypeOf(U.prototype), Symbol.toStringTag).get);
const toBase64 = uncurry(U.prototype.toBase64), fromBase64 = U.fromBase64.bind(U), parse = J.parse;
const cut = uncurry(S.prototype.slice);
const isView = ArrayBuffer.isView, isArray = Array.isArray, then = uncurry(P.prototype.then);
const define = (name, value) => defineProperty(globalThis, name,
  { value, writable: true, enumerable: false, configurable: true });
const isBytes = (v) => isView(v) && tagOf(v) === "Uint8Array";

// Calls of the host: so many at once, the others wait here, on the script's own memory.
const waiting = create(null);
let lastCall = 0, flying = 0, head = null, tail = null;
function pump() {
  while (head && flying < atOnce) {
    const j = head;
    if (!(head = j.next)) tail = null;
    flying++;
    waiting[j.id = ++lastCall] = j;
    call(j.id, j.op, j.path, j.to, j.flag, j.encoding, j.binary, j.data);
    j.data = "";
  }
}
function send(op, fill) {
  return new P((resolve, reject) => {
    const j = { __proto__: null, op, path: "", to: "", flag: false, encoding: "", binary: false, data: "",
      resolve, reject, next: null };
    fill(j); // what it throws is a rejection
    const most = j.binary ? 89478488 : 67108864; // 64 MB, or their base64
    if (j.data.length > most) throw new E("fs." + op + ": " + j.path + ": the data is over the limit of 64 MB");
    tail = tail ? tail.next = j : head = j;
    pump();
  });
}
function settle(id, kind, value, code) {
  const j = waiting[id];
  delete waiting[id];
  flying--;
  switch (kind) {
  case "text": j.resolve(value); break;
  case "bytes": j.resolve(fromBase64(value)); break;
  case "json": j.resolve(parse(value)); break;
  case "error": {
    const e = new E(value);
    defineProperty(e, "stack", { value: "", writable: true, enumerable: false, configurable: true }); // it is ours
    if (code) defineProperty(e, "code", { value: code, writable: true, enumerable: false, configurable: true });
    j.reject(e);
    break;
  }
  default: j.resolve(undefined);
  }
  pump();
}

if (withFS) {
  const name = (op, what, v) => {
    if (typeof v !== "string") throw new T("fs." + op + ": " + what + " must be a string");
    return v.length > 5000 ? cut(v, 0, 5000) + "…" : v; // no system takes longer ones: it stays too long
  };
  const one = (op, path, options) => send(op, (j) => {
    j.path = name(op, "path", path);
    j.flag = !!(options && options.recursive);
  });
  const two = (op, from, a, to, b) => send(op, (j) => { j.path = name(op, from, a); j.to = name(op, to, b); });
  const fs = {
    readFile(path, encoding) {
      return send("readFile", (j) => {
        j.path = name("readFile", "path", path);
        j.encoding = encoding === "buffer" ? "buffer" : "utf8";
      });
    },
    writeFile(path, data) {
      return send("writeFile", (j) => {
        j.path = name("writeFile", "path", path);
        j.data = (j.binary = isBytes(data)) ? toBase64(data) : S(data);
      });
    },
    appendFile(path, data) {
      return send("appendFile", (j) => { j.path = name("appendFile", "path", path); j.data = S(data); });
    },
    readdir(path) { return one("readdir", path); },
    stat(path) { return one("stat", path); },
    mkdir(path, options) { return one("mkdir", path, options); },
    rm(path, options) { return one("rm", path, options); },
    unlink(path) { return one("rm", path); },
    rename(oldPath, newPath) { return two("rename", "oldPath", oldPath, "newPath", newPath); },
    copyFile(src, dest) { return two("copyFile", "src", src, "dest", dest); },
    exists(path) { return one("exists", path); },
  };
  for (const m of keys(fs)) freeze(fs[m]);
  defineProperty(globalThis, "fs", { value: freeze(fs), writable: false, enumerable: true, configurable: false });
}

// Values for the console.
const mapEach = uncurry(Map.prototype.forEach), setEach = uncurry(Set.prototype.forEach);
const iso = uncurry(Date.prototype.toISOString), quote = J.stringify;
function shown(v, depth, above) {
  switch (typeof v) {
  case "string": return depth ? quote(v) : v;
  case "bigint": return v + "n";
  case "symbol": return S(v);
  case "function": return v.name ? "[Function: " + S(v.name) + "]" : "[Function]";
  case "object": break;
  case "unknown": return "null"; // the engine throws it where there is no memory for an exception
  default: return S(v);
  }
  if (v === null) return "null";
  for (let a = above; a; a = a.up) if (a.v === v) return "[Circular]";
  if (v instanceof E) {
    const all = (v.stack ? S(v.stack) : "").replaceAll("<eval>", "script").split("\n")
      .filter((l) => /[)\d]$/.test(l)); // ours have no lines
    if (all.length > 10) all.splice(10, all.length, "    ...");
    return ["" + v, ...all].join("\n");
  }
  if (v instanceof P) return "Promise";
  if (v instanceof Date) return isNaN(v) ? "Invalid Date" : iso(v);
  if (v instanceof RegExp) return S(v);
  if (depth > 4) return isArray(v) ? "[Array]" : "[Object]";
  const up = { v, up: above }, out = [];
  const more = (x) => shown(x, depth + 1, up), push = (x) => { out[out.length] = x; };
  let open = "{", close = "}", left = 0;
  const kind = isView(v) ? tagOf(v) : undefined;
  if (isArray(v) || kind) {
    const n = v.length;
    open = (kind ? kind + "(" + n + ") " : "") + "["; close = "]";
    for (let i = 0; i < n && i < 100; i++) push(more(v[i]));
    left = n - 100;
  } else if (v instanceof Map) {
    open = "Map(" + v.size + ") {";
    mapEach(v, (x, k) => { out.length < 100 ? push(more(k) + " => " + more(x)) : left++; });
  } else if (v instanceof Set) {
    open = "Set(" + v.size + ") {";
    setEach(v, (x) => { out.length < 100 ? push(more(x)) : left++; });
  } else {
    const c = v.constructor;
    if (c && c !== O && c.name) open = S(c.name) + " {";
    const all = keys(v);
    for (let i = 0; i < all.length && i < 100; i++) {
      push((/^[\w$]+$/.test(all[i]) ? all[i] : quote(all[i])) + ": " + more(v[all[i]]));
    }
    left = all.length - 100;
  }
  if (left > 0) push("... " + left + " more");
  const one = out.join(", "), pad = open.endsWith("[") ? "" : " ";
  if (!out.length) return open + close;
  if (one.length <= 72 && !one.includes("\n")) return open + pad + one + pad + close;
  const indent = "  ".repeat(depth + 1);
  return open + "\n" + indent + out.join(",\n" + indent) + "\n" + "  ".repeat(depth) + close;
}
const errorText = uncurry(E.prototype.toString);
defineProperty(ReferenceError.prototype, "toString", { writable: true, enumerable: false, configurable: true,
  value() { return errorText(this).replace(/^ReferenceError: '(.*)' is not/, "ReferenceError: $1 is not"); } });
const line = (prefix) => (...values) => {
  let text = prefix;
  for (let i = 0; i < values.length; i++) {
    let s;
    try { s = shown(values[i], 0, null); } catch { s = "[can't be shown]"; }
    text += (i ? " " : "") + s;
  }
  write(text + "\n");
};
const plain = line("");
define("console", { log: plain, debug: plain, trace: plain, info: line("[INFO] "), warn: line("[WARN] "),
  error: line("[ERROR] "), dir: plain, table: plain,
  group: plain, groupCollapsed: plain, groupEnd() {}, time() {}, timeEnd() {}, timeLog() {},
  assert: (ok, ...v) => { if (!ok) plain("Assertion failed", ...v); } });

// Timers. They end with the run.
const timers = create(null);
let lastTimer = 0;
function start(every, f, ms, args) {
  if (typeof f !== "function") throw new T("the first argument of a timer must be a function");
  const id = ++lastTimer;
  ms = +ms > 0 ? Math.min(+ms, 2147483647) : 0;
  timers[id] = { f, args, every: every ? Math.max(ms, 1) : -1 };
  sleep(id, ms);
  return id;
}
function ring(id) {
  const t = timers[id];
  if (!t) return;
  if (t.every < 0) delete timers[id]; else sleep(id, t.every);
  t.f(...t.args);
}
const stop = (id) => { if (id in timers) { delete timers[id]; sleep(id, -1); } };
define("setTimeout", (f, ms, ...args) => start(false, f, ms, args));
define("setInterval", (f, ms, ...args) => start(true, f, ms, args));
define("setImmediate", (f, ...args) => start(false, f, 0, args));
define("clearTimeout", stop);
define("clearInterval", stop);
define("clearImmediate", stop);
if (typeof queueMicrotask !== "function") define("queueMicrotask", (f) => { then(P.resolve(), () => f()); });
return [settle, ring, (e) => {
  try { return shown(e, 0, null); }
  catch (x) { return typeof x === "unknown" ? "null" : "an error that can't be shown"; } // no memory: see shown
}];
})
