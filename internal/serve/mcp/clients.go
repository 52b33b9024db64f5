package mcp

import (
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/dialect"
)

// A client says what a program that calls us is known to show a model. docs/internals/clients.md has how each was measured. The zero value
// is for programs that nobody has measured: text alone, in pages that no known client cuts.
type client struct {
	name string // its clientInfo begins so, in lower case
	// structured: it keeps structuredContent apart from the text for the model. Most show it beside the text or in its place.
	structured bool
	images     bool // it shows images and files as such. Some write them out as base64 text.
	page       dialect.Page
}

var (
	// unknown is the page of a client that is not known to show a longer one: 8,000 characters of JSON, with room for the client's own.
	unknown = dialect.Page{Bytes: 7_600, JSON: true}
	// uncut is the page of a client that shows all that it is given.
	uncut = dialect.Page{Bytes: 256 << 10}
)

// clients has those that were measured, but for those without a page, which are known from their documentation.
// The limits leave room for our notes and the client's JSON.
var clients = []client{
	// 25,000 tokens, at three and a half bytes each: where its own Read stops.
	{name: "claude-code", images: true, page: dialect.Page{Bytes: 87_500, Numbers: "tab"}},
	{name: "claude-ai", images: true}, // Claude Desktop
	{name: "cursor", images: true},
	{name: "visual studio code", images: true},
	{name: "codex", images: true, page: dialect.Page{Bytes: 10_000, Hard: true}},
	{name: "gemini-cli", images: true, page: dialect.Page{Bytes: 38_000, Hard: true}},
	{name: "opencode", images: true, page: dialect.Page{Bytes: 49_000, Hard: true, Lines: 1_990}},
	{name: "copilot-cli", page: dialect.Page{Bytes: 19_000, Hard: true}},
	{name: "qwen-cli-mcp-client", images: true, page: dialect.Page{Bytes: 24_000, Hard: true}},
	{name: "@cline/core", page: dialect.Page{Bytes: unknown.Bytes, JSON: true, Hard: true}},
	{name: "@langchain/mcp-adapters", images: true, page: uncut},
	{name: "ai-sdk-mcp-client", structured: true, images: true, page: uncut},
	{name: "mcp-inspector", structured: true, images: true, page: uncut},
	{name: "inspector-cli", structured: true, images: true, page: uncut},
}

// wants is the experimental capability by which any client asks for all that there is: structuredContent, images, and long pages.
const wants = "moltis-fs/structured"

// clientOf gives the row of a client by its name and its capabilities.
func clientOf(info *sdk.Implementation, caps *sdk.ClientCapabilities) client {
	out := client{}
	if info != nil {
		name := strings.ToLower(info.Name)
		for _, c := range clients {
			if strings.HasPrefix(name, c.name) {
				out = c
				break
			}
		}
	}
	if out.page.Bytes == 0 {
		out.page = unknown
	}
	if caps != nil && caps.Experimental[wants] != nil {
		out = client{structured: true, images: true, page: uncut}
	}
	return out
}
