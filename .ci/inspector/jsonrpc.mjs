// A JSON-RPC client that nobody here wrote (npm json-rpc-2.0), driven by a test:
//
//	node jsonrpc.mjs URL TOKEN < calls.jsonl > answers.jsonl
//
// A line of calls is {"method": …, "params": …}; its answer is {"result": …} or {"error": …}.
import { createInterface } from "node:readline";
import { JSONRPCClient } from "json-rpc-2.0";

const [url, token] = process.argv.slice(2);
const client = new JSONRPCClient(async (request) => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(request),
  });
  if (response.status === 200) {
    client.receive(await response.json());
  } else if (request.id !== undefined) {
    throw new Error(`${response.status} ${await response.text()}`);
  }
});
for await (const line of createInterface({ input: process.stdin })) {
  const { method, params } = JSON.parse(line);
  let answer;
  try {
    answer = { result: await client.request(method, params) };
  } catch (e) {
    answer = { error: { code: e.code, message: e.message, data: e.data } };
  }
  console.log(JSON.stringify(answer));
}
