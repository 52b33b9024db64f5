package mcp

import (
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/dialect"
)

// A client describes a program that calls us: measured with it, see docs/clients.md.
type client struct {
	name string // its clientInfo begins so, in lower case
	// textOnly: it gives the model structuredContent in place of the text and the images beside it
	// (anthropics/claude-code issue 79944, microsoft/vscode issue 290063), or beside it, as gemini-cli
	// with what was refused, so it gets none.
	textOnly bool
	page     dialect.Page
}

// The limits leave room for what stands around the text: our own notes and the client's JSON.
var clients = []client{
	// 25,000 tokens, at three and a half bytes each: where its own Read stops.
	{"claude-code", true, dialect.Page{Bytes: 87_500, Numbers: "tab"}},
	{"visual studio code", true, dialect.Page{}},
	{"codex", true, dialect.Page{Bytes: 10_000, Hard: true}},
	{"gemini-cli", true, dialect.Page{Bytes: 38_000, Hard: true}},
	{"opencode", false, dialect.Page{Bytes: 49_000, Hard: true, Lines: 1_990}},
}

// clientOf gives the row of the client that info names; for a stranger the zero client.
func clientOf(info *sdk.Implementation) client {
	if info == nil {
		return client{}
	}
	name := strings.ToLower(info.Name)
	for _, c := range clients {
		if strings.HasPrefix(name, c.name) {
			return c
		}
	}
	return client{}
}
