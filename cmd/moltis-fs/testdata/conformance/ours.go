// The conformance server of the Go SDK, with its fixtures, behind our transport. TestConformance puts it together: its main is that of
// the SDK but for one line, which calls serveOurs.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/dialect"
	"moltisfs/internal/serve"
	"moltisfs/internal/serve/jsonrpc"
	"moltisfs/internal/serve/mcp"
)

// serveOurs serves what a server of the SDK has, and prints where, and with which token.
func serveOurs(server *sdk.Server) {
	tokens := serve.Tokens(os.Args[len(os.Args)-1])
	_, secret, err := tokens.Create(serve.Token{Principal: "suite"})
	if err != nil {
		log.Fatal(err)
	}
	l, err := serve.Listen("127.0.0.1:0", false)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr(), secret)
	log.Fatal(jsonrpc.New(dialect.Join(), jsonrpc.Options{Tokens: tokens, MCP: mcp.Fixtures(server)}).Serve(context.Background(), l))
}
