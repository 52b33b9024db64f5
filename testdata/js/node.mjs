// node node.mjs SCRIPT: runs a script with the fs of run_js, made of Node's own file functions.
// Another implementation of the same contract, to compare with.
import * as node from "node:fs/promises";
import { pathToFileURL } from "node:url";

const must = (op, what, v) => {
  if (typeof v !== "string") throw new TypeError(`fs.${op}: ${what} must be a string`);
};
const doing = async (op, path, work) => {
  try {
    return await work();
  } catch (e) {
    throw new Error(`fs.${op}: ${path}: ${e.message}`);
  }
};
const one = (op, work) => async (path, arg) => {
  must(op, "path", path);
  return doing(op, path, () => work(path, arg));
};
const two = (op, a, b, work) => async (from, to) => {
  must(op, a, from);
  must(op, b, to);
  return doing(op, `${from} -> ${to}`, () => work(from, to));
};
const remove = (op) => one(op, async (path, o) => {
  const dir = (await node.lstat(path)).isDirectory();
  if (!dir) return node.unlink(path);
  return o?.recursive ? node.rm(path, { recursive: true }) : node.rmdir(path);
});

globalThis.fs = Object.freeze({
  async readFile(path, encoding) {
    must("readFile", "path", path);
    const bytes = await doing("readFile", path, () => node.readFile(path));
    if (encoding === "buffer") return new Uint8Array(bytes);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch (e) {
      throw new Error(`fs.readFile: invalid UTF-8 in ${path}: ${e.message}`);
    }
  },
  writeFile: one("writeFile", (path, data) =>
    node.writeFile(path, data instanceof Uint8Array ? data : String(data))),
  appendFile: one("appendFile", (path, data) => node.appendFile(path, String(data))),
  readdir: one("readdir", (path) => node.readdir(path)),
  stat: one("stat", async (path) => {
    const s = await node.stat(path);
    return { size: s.size, isFile: s.isFile(), isDirectory: s.isDirectory(),
      isSymlink: (await node.lstat(path)).isSymbolicLink(), readonly: (s.mode & 0o222) === 0,
      mtimeMs: s.mtimeMs, atimeMs: s.atimeMs, birthtimeMs: s.birthtimeMs };
  }),
  mkdir: one("mkdir", async (path, o) => { await node.mkdir(path, { recursive: !!o?.recursive }); }),
  rm: remove("rm"),
  unlink: (path) => remove("rm")(path),
  rename: two("rename", "oldPath", "newPath", node.rename),
  copyFile: two("copyFile", "src", "dest", node.copyFile),
  async exists(path) {
    must("exists", "path", path);
    return node.access(path).then(() => true, () => false);
  },
});
const log = console.log;
for (const level of ["info", "warn", "error", "debug", "trace"]) {
  const before = { info: "[INFO] ", warn: "[WARN] ", error: "[ERROR] " }[level] ?? "";
  console[level] = (...all) => log(before + all.join(" "));
}
try {
  await import(pathToFileURL(process.argv[2]));
} catch (e) {
  log(`uncaught ${e.name}: ${e.message}`);
}
