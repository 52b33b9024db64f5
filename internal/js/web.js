// The web's helpers that the language lacks. They are plain JavaScript over the script's own globals.
(function () {
"use strict";
const define = (name, value) => Object.defineProperty(globalThis, name,
  { value, writable: true, enumerable: false, configurable: true });
const fail = (name, message) => Object.assign(new Error(message), { name });

define("TextEncoder", class TextEncoder {
  get encoding() { return "utf-8"; }
  encode(text = "") {
    const s = String(text).toWellFormed(), out = new Uint8Array(s.length * 3);
    return out.slice(0, fill(s, out).written);
  }
  encodeInto(text, out) { return fill(String(text).toWellFormed(), out); }
});
function fill(s, out) {
  let read = 0, written = 0;
  while (read < s.length) {
    const c = s.codePointAt(read), n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (written + n > out.length) break;
    if (n === 1) out[written++] = c;
    else {
      out[written++] = [0, 0, 0xc0, 0xe0, 0xf0][n] | c >> 6 * (n - 1);
      for (let i = n - 2; i >= 0; i--) out[written++] = 0x80 | c >> 6 * i & 0x3f;
    }
    read += n === 4 ? 2 : 1;
  }
  return { read, written };
}
define("TextDecoder", class TextDecoder {
  #fatal; #bom; #rest = [];
  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    if (!/^\s*(utf-?8|unicode-1-1-utf-8)\s*$/i.test(label)) throw new RangeError(`the encoding ${label} is not known`);
    this.#fatal = !!fatal; this.#bom = !!ignoreBOM;
  }
  get encoding() { return "utf-8"; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#bom; }
  decode(input = new Uint8Array(), { stream = false } = {}) {
    let b = ArrayBuffer.isView(input) ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength) : new Uint8Array(input);
    if (this.#rest.length) b = Uint8Array.from([...this.#rest, ...b]);
    this.#rest = [];
    let out = "", units = [];
    for (let i = 0; i < b.length;) {
      const c = b[i];
      let need = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : -1;
      let point = need <= 0 ? c : c & 0x3f >> need, got = 0;
      while (got < need && i + got + 1 < b.length) {
        const d = b[i + got + 1], low = got ? 0x80 : c === 0xe0 ? 0xa0 : c === 0xf0 ? 0x90 : 0x80;
        if (d < low || d > (got ? 0xbf : c === 0xed ? 0x9f : c === 0xf4 ? 0x8f : 0xbf)) break;
        point = point << 6 | d & 0x3f; got++;
      }
      if (need >= 0 && got < need && i + got + 1 === b.length && stream) { this.#rest = [...b.slice(i)]; break; }
      if (need < 0 || got < need) {
        if (this.#fatal) throw new TypeError("the data is not UTF-8");
        point = 0xfffd;
      }
      i += 1 + Math.max(got, 0);
      units.push(point);
      if (units.length === 4096) { out += String.fromCodePoint(...units); units = []; }
    }
    out += String.fromCodePoint(...units);
    return !this.#bom && out.charCodeAt(0) === 0xfeff ? out.slice(1) : out;
  }
});

define("atob", (text) => {
  try { return Array.from(Uint8Array.fromBase64(String(text)), (c) => String.fromCharCode(c)).join(""); }
  catch { throw fail("InvalidCharacterError", "the text is not base64"); }
});
define("btoa", (text) => Uint8Array.from(String(text), (c) => {
  if (c.codePointAt(0) > 255) throw fail("InvalidCharacterError", "the text has characters above U+00FF");
  return c.charCodeAt(0);
}).toBase64());

define("structuredClone", (value) => {
  const seen = new Map();
  const no = (v) => { throw fail("DataCloneError", `${typeof v === "function" ? "a function" : String(v)} can't be cloned`); };
  const copy = (v) => {
    if (typeof v === "function" || typeof v === "symbol") no(v);
    if (typeof v !== "object" || v === null) return v;
    if (seen.has(v)) return seen.get(v);
    const keep = (c) => { seen.set(v, c); return c; };
    if (v instanceof Promise || v instanceof WeakMap || v instanceof WeakSet || v instanceof WeakRef) no(v.constructor.name);
    if (v instanceof Date) return keep(new Date(v.getTime()));
    if (v instanceof RegExp) return keep(new RegExp(v.source, v.flags));
    if (v instanceof ArrayBuffer) return keep(v.slice(0));
    if (v instanceof DataView) return keep(new DataView(copy(v.buffer), v.byteOffset, v.byteLength));
    if (ArrayBuffer.isView(v)) return keep(new v.constructor(copy(v.buffer), v.byteOffset, v.length));
    if (v instanceof Map) { const c = keep(new Map()); v.forEach((x, k) => c.set(copy(k), copy(x))); return c; }
    if (v instanceof Set) { const c = keep(new Set()); v.forEach((x) => c.add(copy(x))); return c; }
    if (v instanceof Error) {
      const c = keep(new (globalThis[v.name] ?? Error)(v.message));
      if ("cause" in v) c.cause = copy(v.cause);
      return c;
    }
    const c = keep(Array.isArray(v) ? new Array(v.length) : {});
    for (const k of Object.keys(v)) c[k] = copy(v[k]);
    return c;
  };
  return copy(value);
});
})
