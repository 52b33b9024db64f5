// What a library gives a model of a Read:
//
//	node models.mjs PACKAGES LIBRARY FILE COMMAND ARGS…
//
// PACKAGES is where npm has put the libraries.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, library, file_path, command, ...args] = process.argv.slice(2);
const where = createRequire(resolve(packages, "of.js"));
const load = (name) => import(pathToFileURL(where.resolve(name)).href);
let result, client;
switch (library) {
  case "langchain": {
    const { MultiServerMCPClient } = await load("@langchain/mcp-adapters");
    client = new MultiServerMCPClient({ mcpServers: { files: { transport: "stdio", command, args } } });
    const read = (await client.getTools()).find((t) => t.name.endsWith("Read"));
    result = await read.invoke({ file_path });
    break;
  }
  case "vercel": {
    const { createMCPClient } = await load("@ai-sdk/mcp");
    const { Experimental_StdioMCPTransport } = await load("@ai-sdk/mcp/mcp-stdio");
    client = await createMCPClient({ transport: new Experimental_StdioMCPTransport({ command, args }) });
    const { Read } = await client.tools();
    const output = await Read.execute({ file_path }, { toolCallId: "1", messages: [] });
    result = Read.toModelOutput ? await Read.toModelOutput({ output, toolCallId: "1", input: { file_path } }) : output.content;
    break;
  }
  case "openai-agents": {
    const { MCPServerStdio } = await load("@openai/agents");
    client = new MCPServerStdio({ name: "files", command, args });
    await client.connect();
    result = await client.callTool("Read", { file_path });
    break;
  }
}
console.log(typeof result === "string" ? result : JSON.stringify(result));
await client.close();
