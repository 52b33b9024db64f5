// A client of MCP on an SDK that nobody here wrote, driven by a test:
//
//	node mcp.mjs PACKAGES SDK ERA COMMAND ARGS… < calls.jsonl > answers.jsonl
//
// PACKAGES is where npm has put the SDK; SDK is 1 or 2; ERA is the revision that is insisted on, or
// "legacy". COMMAND may be the URL of a server of HTTP, and ARGS its token. The first answer is what the server said of itself. A call is {"name", "arguments",
// "answer": what the user says to its question, "times": so often at once, "cancel": after so many
// milliseconds}.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { createInterface } from "node:readline";

const [packages, sdk, era, command, ...args] = process.argv.slice(2);
const load = createRequire(resolve(packages, "of.js"));
const capabilities = { elicitation: { form: {} }, experimental: { "moltis-fs/structured": {} } };
const info = { name: `typescript-sdk-${sdk}`, version: sdk };
const http = command.startsWith("http://");
let client, transport;
if (sdk === "1") {
  client = new (load("@modelcontextprotocol/sdk/client/index.js").Client)(info, { capabilities });
  transport = http
    ? load("@modelcontextprotocol/sdk/client/streamableHttp.js").StreamableHTTPClientTransport
    : load("@modelcontextprotocol/sdk/client/stdio.js").StdioClientTransport;
} else {
  const mode = era === "legacy" ? era : { pin: era };
  client = new (load("@modelcontextprotocol/client").Client)(info, { capabilities, versionNegotiation: { mode } });
  transport = http
    ? load("@modelcontextprotocol/client").StreamableHTTPClientTransport
    : load("@modelcontextprotocol/client/stdio").StdioClientTransport;
}
let answer = "cancel";
let asked = [];
const ask = async ({ params }) => {
  asked.push(params.message);
  return answer === "accept" ? { action: answer, content: {} } : { action: answer };
};
const question = sdk === "1" ? load("@modelcontextprotocol/sdk/types.js").ElicitRequestSchema : "elicitation/create";
client.setRequestHandler(question, ask);

const call = async ({ name, arguments: given, cancel }) => {
  const control = new AbortController();
  const progress = [];
  const options = { signal: control.signal, onprogress: (p) => progress.push(p) };
  if (cancel) setTimeout(() => control.abort("enough"), cancel);
  const params = { name, arguments: given };
  try {
    const result = await (sdk === "1" ? client.callTool(params, undefined, options) : client.callTool(params, options));
    return { result, progress };
  } catch (e) {
    return { error: { code: e.code, message: String(e.message ?? e) }, progress };
  }
};

const headers = { Authorization: `Bearer ${args[0]}` };
await client.connect(http ? new transport(new URL(command), { requestInit: { headers } }) : new transport({ command, args, stderr: "inherit" }));
const { tools } = await client.listTools(); // from now on the SDK judges answers by their schemas
console.log(JSON.stringify({ server: client.getServerVersion(), instructions: client.getInstructions(), tools }));
for await (const line of createInterface({ input: process.stdin })) {
  const given = JSON.parse(line);
  answer = given.answer ?? "cancel";
  asked = [];
  const start = performance.now();
  const all = await Promise.all(Array.from({ length: given.times ?? 1 }, () => call(given)));
  console.log(JSON.stringify({ answers: all, asked, ms: Math.round(performance.now() - start) }));
}
await client.close();
