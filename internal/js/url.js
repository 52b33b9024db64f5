// URL and URLSearchParams, for addresses as programs write them: no punycode, no IPv4 in odd bases.
(function () {
"use strict";
const define = (name, value) => Object.defineProperty(globalThis, name,
  { value, writable: true, enumerable: false, configurable: true });
const ports = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21", "file:": "" };
const escape = (s, set) => s.toWellFormed().replace(set, (c) => encodeURIComponent(c).replace(/['()*!~]/g,
  (x) => "%" + x.charCodeAt(0).toString(16).toUpperCase()));
const inPath = /[^\x21\x24-\x3b\x3d\x40-\x5f\x61-\x7a\x7c\x7e%]/gu, inQuery = /[^\x21\x24-\x26\x28-\x3b\x3d\x3f-\x7e%]/gu;
const inHash = /[^\x21\x23-\x3b\x3d\x3f-\x5f\x61-\x7e%]/gu, inUser = /[^\w\-.!~*'()%$&+,]/gu;
const form = (s) => encodeURIComponent(String(s).toWellFormed()).replace(/%20/g, "+").replace(/[!'()~]/g,
  (x) => "%" + x.charCodeAt(0).toString(16).toUpperCase());
const unform = (s) => {
  s = s.replace(/\+/g, " ");
  try { return decodeURIComponent(s); } catch { return s.replace(/(%[\da-f]{2})+/gi, (x) => {
    try { return decodeURIComponent(x); } catch { return "\ufffd"; } }); }
};

class URLSearchParams {
  #list = []; #told;
  constructor(init = "", told) {
    this.#told = told;
    if (typeof init === "object" && init !== null) {
      const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
      for (const [k, v] of pairs) this.#list.push([String(k), String(v)]);
    } else this.#list = URLSearchParams.#read(String(init).replace(/^\?/, ""));
  }
  static #read(s) {
    return s.split("&").filter((p) => p).map((p) => {
      const at = p.indexOf("=");
      return at < 0 ? [unform(p), ""] : [unform(p.slice(0, at)), unform(p.slice(at + 1))];
    });
  }
  #changed() { this.#told?.(this.toString()); }
  get size() { return this.#list.length; }
  append(k, v) { this.#list.push([String(k), String(v)]); this.#changed(); }
  delete(k, v) {
    this.#list = this.#list.filter((p) => p[0] !== String(k) || v !== undefined && p[1] !== String(v));
    this.#changed();
  }
  get(k) { return this.#list.find((p) => p[0] === String(k))?.[1] ?? null; }
  getAll(k) { return this.#list.filter((p) => p[0] === String(k)).map((p) => p[1]); }
  has(k, v) { return this.#list.some((p) => p[0] === String(k) && (v === undefined || p[1] === String(v))); }
  set(k, v) {
    const at = this.#list.findIndex((p) => p[0] === String(k));
    if (at < 0) this.#list.push([String(k), String(v)]);
    else {
      this.#list[at][1] = String(v);
      this.#list = this.#list.filter((p, i) => i <= at || p[0] !== String(k));
    }
    this.#changed();
  }
  sort() { this.#list.sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0); this.#changed(); }
  forEach(f, self) { for (const [k, v] of this.#list) f.call(self, v, k, this); }
  *entries() { for (const [k, v] of this.#list) yield [k, v]; }
  *keys() { for (const p of this.#list) yield p[0]; }
  *values() { for (const p of this.#list) yield p[1]; }
  [Symbol.iterator]() { return this.entries(); }
  toString() { return this.#list.map(([k, v]) => form(k) + "=" + form(v)).join("&"); }
}

class URL {
  #at; #params;
  constructor(text, base) {
    this.#at = URL.#split(String(text).trim(), base === undefined ? null : new URL(base).#at);
    this.#renew();
  }
  #renew() { this.#params = new URLSearchParams(this.#at.search, (s) => { this.#at.search = s && "?" + s; }); }
  static canParse(text, base) { try { return !!new URL(text, base); } catch { return false; } }
  static parse(text, base) { try { return new URL(text, base); } catch { return null; } }
  static #split(s, base) {
    const no = () => { throw new TypeError(`${s} is not a URL`); };
    const at = { protocol: "", user: "", password: "", host: null, port: "", path: "", search: "", hash: "" };
    s = s.replace(/[\t\n\r]/g, "");
    const cut = s.indexOf("#");
    if (cut >= 0) { at.hash = cut + 1 < s.length ? "#" + escape(s.slice(cut + 1), inHash) : ""; s = s.slice(0, cut); }
    const scheme = /^([a-z][a-z\d+.-]*):/i.exec(s);
    let rest = s;
    if (scheme) { at.protocol = scheme[0].toLowerCase(); rest = s.slice(scheme[0].length); }
    else if (!base) no();
    else at.protocol = base.protocol;
    const special = at.protocol in ports;
    if (special) rest = rest.replace(/^[^?]*/, (x) => x.replace(/\\/g, "/"));
    const ask = rest.indexOf("?");
    if (ask >= 0) { at.search = ask + 1 < rest.length ? "?" + escape(rest.slice(ask + 1), inQuery) : ""; rest = rest.slice(0, ask); }
    const authority = special && scheme && at.protocol !== "file:" ? /^\/*([^/]+)/.exec(rest) ?? no() : /^\/\/([^/]*)/.exec(rest);
    if (authority) {
      rest = rest.slice(authority[0].length);
      const m = /^(?:([^:@]*)(?::([^@]*))?@)?(\[[\da-f:.]+\]|[^:[\]@]*)(?::(\d*))?$/i.exec(authority[1]) ?? no();
      at.user = escape(m[1] ?? "", inUser); at.password = escape(m[2] ?? "", inUser);
      at.host = special ? unform(m[3].replace(/\+/g, "%2B")).toLowerCase() : m[3];
      if (/[\s#%/<>?@\\^|]/.test(at.host) || special && !at.host && at.protocol !== "file:" || +m[4] > 65535) no();
      at.port = m[4] && String(+m[4]) !== ports[at.protocol] ? String(+m[4]) : "";
    } else if (!scheme) {
      for (const k of ["user", "password", "host", "port"]) at[k] = base[k];
      if (!rest) { at.path = base.path; if (ask < 0) at.search = base.search; return at; }
      if (base.host === null && !base.path.startsWith("/")) no();
      if (rest[0] !== "/") rest = base.path.replace(/[^/]*$/, "") + rest;
    } else if (special) at.host = "";
    if (!special && at.host === null && rest[0] !== "/") { at.path = escape(rest, inPath); return at; }
    const out = [], parts = rest.replace(/^\//, "").split("/");
    parts.forEach((p, i) => {
      const dots = p.replace(/%2e/gi, "."), last = i === parts.length - 1;
      if (dots === "..") { out.pop(); if (last) out.push(""); }
      else if (dots === ".") { if (last) out.push(""); }
      else out.push(escape(p, inPath));
    });
    at.path = rest || special ? "/" + out.join("/") : "";
    return at;
  }
  get protocol() { return this.#at.protocol; }
  get username() { return this.#at.user; }
  get password() { return this.#at.password; }
  get hostname() { return this.#at.host ?? ""; }
  get port() { return this.#at.port; }
  get host() { return this.hostname + (this.#at.port && ":" + this.#at.port); }
  get origin() { return this.#at.protocol in ports && this.#at.protocol !== "file:" ? this.#at.protocol + "//" + this.host : "null"; }
  get pathname() { return this.#at.path; }
  get search() { return this.#at.search; }
  get hash() { return this.#at.hash; }
  get searchParams() { return this.#params; }
  set protocol(v) { this.#again(String(v).replace(/:?$/, ":"), "protocol"); }
  set username(v) { this.#at.user = escape(String(v), inUser); }
  set password(v) { this.#at.password = escape(String(v), inUser); }
  set hostname(v) { this.#again(String(v), "host"); }
  set host(v) { const m = /^(.*?)(?::(\d+))?$/.exec(String(v)); this.#again(m[1], "host"); if (m[2]) this.port = m[2]; }
  set port(v) { this.#again(String(v), "port"); }
  set pathname(v) { this.#again(String(v).replace(/^\/?/, "/").replace(/\?/g, "%3F").replace(/#/g, "%23"), "path"); }
  set search(v) { v = String(v).replace(/^\?/, ""); this.#at.search = v && "?" + escape(v, inQuery); this.#renew(); }
  set hash(v) { v = String(v).replace(/^#/, ""); this.#at.hash = v && "#" + escape(v, inHash); }
  set href(v) { this.#at = URL.#split(String(v).trim(), null); this.#renew(); }
  #again(v, part) { try { this.#at = URL.#split(URL.#write({ ...this.#at, [part]: v }), null); } catch { /* stays as it was */ } }
  static #write(a) {
    const who = a.user || a.password ? a.user + (a.password && ":" + a.password) + "@" : "";
    return a.protocol + (a.host === null ? "" : "//" + who + a.host + (a.port && ":" + a.port)) + a.path + a.search + a.hash;
  }
  get href() { return URL.#write(this.#at); }
  toString() { return this.href; }
  toJSON() { return this.href; }
}
define("URL", URL);
define("URLSearchParams", URLSearchParams);
})
