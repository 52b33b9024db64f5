package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"moltisfs/config"
	"moltisfs/internal/datadir"
	"moltisfs/internal/engine"
	"moltisfs/internal/serve"
	"moltisfs/tools"
)

// tokenDays is how long a token holds by default: forgotten ones end.
const tokenDays = 90

func tokenCommand() *command {
	return &command{
		name:  "token",
		short: "list, make and revoke the tokens of callers of serve",
		below: []*command{
			{
				name: "list", short: "list the tokens, without their secrets", run: listTokens,
				options:  options("json config data-dir"),
				examples: []string{"moltis-fs token list"},
			},
			{
				records: "token_create", name: "create", short: "make a token and print it, once",
				long: `The token acts for its principal, whose sessions, history and trash it has. It is a
secret: only its hash is kept, in the data directory or
in the database of the fleet.

--read and --write narrow what the configuration allows to some directories, each with all below it.
What may be written may be read. Without either, all that the configuration allows is allowed.

An operator's token answers approvals and reads metrics. It makes no calls, so that nobody approves
what they asked for.`,
				options: options("principal json config data-dir",
					opt("user", "", "for a person, not an agent: the trash stays for a week"),
					opt("operator", "", "for an operator, who answers approvals and makes no calls"),
					opt("expires", "TIME", "how long it is valid, as 12h or 30d, or never (default: 90d)"),
					many("read", "DIR", "a directory that it may read"),
					many("write", "DIR", "a directory that it may read and change"),
					opt("elicit", "", "let its MCP client ask its own user for approvals, in place of an operator"),
					opt("tier", "TIER", "how freely it may change things (default: as configured)",
						"notify", "ask", "blocked"),
				),
				examples: []string{
					"moltis-fs token create --principal ci --read ~/project --write ~/project/build",
					"moltis-fs token create --principal ann --user --expires 12h > ann.token",
				},
				run: createToken,
			},
			{
				records: "token_revoke", ids: tokensOf, name: "revoke", args: "ID", min: 1, max: 1, run: revokeToken,
				short:    "revoke a token, at once and for good",
				options:  options("json config data-dir"),
				examples: []string{"moltis-fs token revoke tk-4xk2m7qa"},
			},
		},
	}
}

// tokens opens the store of tokens: in the data directory, or that of the fleet.
func (in *invocation) tokens() (*serve.TokenStore, error) {
	files, dir, err := in.shared("tokens")
	if err != nil || files == nil {
		return serve.Tokens(dir), err
	}
	return serve.TokensIn(files), nil
}

// unusableTokens says of err that the file of tokens can't be read or written as it is.
func unusableTokens(err error) error {
	if err == serve.ErrUnknownToken || err == nil {
		return err
	}
	if engine.CutOff(err) {
		return storeError(err)
	}
	return misuse("chmod 600 the file if it is yours; else remove it, and make new tokens", "%v", err)
}

// takeDataDir makes the data directory if there is none.
func (in *invocation) takeDataDir() error {
	dir, err := in.dataDir()
	if err == nil {
		err = datadir.Take(dir, in.logger(slog.LevelInfo))
	}
	if d, ok := errors.AsType[*datadir.Error](err); ok {
		return misuse(d.Hint(), "%v", d)
	}
	return err
}

func createToken(_ context.Context, in *invocation) error {
	switch {
	case !in.given("principal"):
		return misuse(seeHelp(in.command), "token create needs --principal NAME")
	case in.given("operator") && in.count("user", "read", "write", "tier", "elicit") > 0:
		return misuse("make another token for calls",
			"an operator's token makes no calls: --operator goes without --user, --read, --write, "+
				"--tier and --elicit")
	}
	t := serve.Token{
		Principal: in.option("principal"), Tier: in.option("tier"), ByUser: in.given("user"),
		Elicit: in.given("elicit"), Operator: in.given("operator"),
	}
	if in.count("read", "write") > 0 {
		t.Scope = &serve.Scope{Readable: []string{}, Writable: []string{}}
		for _, name := range []string{"read", "write"} {
			for _, dir := range in.all(name) {
				abs, err := filepath.Abs(dir)
				if err != nil {
					return fmt.Errorf("finding %s: %w", dir, err)
				}
				t.Scope.Readable = append(t.Scope.Readable, abs)
				if name == "write" {
					t.Scope.Writable = append(t.Scope.Writable, abs)
				}
			}
		}
	}
	holds := config.Duration(tokenDays * 24 * time.Hour)
	if when := in.option("expires"); when != "" && when != "never" {
		if err := holds.UnmarshalText([]byte(when)); err != nil || holds <= 0 {
			return misuse("write it as 12h or 30d, or never", "--expires can't be %q", when)
		}
	}
	if in.option("expires") != "never" {
		t.Expires = time.Now().Add(time.Duration(holds)).UTC().Truncate(time.Second)
	}
	if err := in.takeDataDir(); err != nil {
		return err
	}
	s, err := in.tokens()
	if err != nil {
		return err
	}
	var secret string
	err = in.recorded(func() (err error) {
		t, secret, err = s.Create(t)
		return unusableTokens(err)
	})
	if err != nil {
		return err
	}
	if in.given("json") {
		return in.answer(struct {
			tokenRow
			Secret string `json:"secret"` // shown this once
		}{tokenRowOf(t), secret}, "")
	}
	fmt.Fprintf(in.err, "%s: token %s of %s, %s\nhint: it is shown this once; send it as "+
		"\"Authorization: Bearer …\", and take it away with %s token revoke %s\n",
		program, t.ID, visible(t.Principal), endOf(t), program, t.ID)
	return in.write([]byte(secret + "\n"))
}

// endOf says until when a token holds.
func endOf(t serve.Token) string {
	switch {
	case t.Expires.IsZero():
		return "holds until it is revoked"
	case t.Expired(time.Now()):
		return "expired " + timeText(t.Expires)
	}
	return "holds until " + timeText(t.Expires)
}

// tokenMay says what a token may do.
func tokenMay(t serve.Token) string {
	var words []string
	switch {
	case t.Operator:
		words = append(words, "operator")
	case t.ByUser:
		words = append(words, "user")
	default:
		words = append(words, "agent")
	}
	if t.Elicit {
		words = append(words, "its client asks for approvals")
	}
	if t.Tier != "" {
		words = append(words, "tier "+t.Tier)
	}
	if t.Scope != nil {
		for _, dir := range t.Scope.Readable {
			words = append(words, "reads "+visible(dir))
		}
		for _, dir := range t.Scope.Writable {
			words = append(words, "writes "+visible(dir))
		}
	}
	return strings.Join(words, ", ")
}

// tokenRow is a token as list and revoke answer it; its hash is of no use to anybody.
type tokenRow struct {
	serve.Token
	Hash    string `json:"sha256,omitempty"`
	Expired bool   `json:"expired"`
}

func tokenRowOf(t serve.Token) tokenRow {
	return tokenRow{Token: t, Expired: t.Expired(time.Now())}
}

func listTokens(_ context.Context, in *invocation) error {
	s, err := in.tokens()
	if err != nil {
		return err
	}
	all, err := s.List()
	if err != nil {
		return unusableTokens(err)
	}
	rows, shown := []tokenRow{}, [][]string{}
	for _, t := range all {
		rows = append(rows, tokenRowOf(t))
		used := "never used"
		if !t.LastUsed.IsZero() {
			used = "used " + ageText(time.Since(t.LastUsed))
		}
		shown = append(shown, []string{t.ID, visible(t.Principal), endOf(t), used, tokenMay(t)})
	}
	return in.table(map[string]any{"tokens": rows}, shown, "", "there are no tokens")
}

func revokeToken(_ context.Context, in *invocation) error {
	s, err := in.tokens()
	if err != nil {
		return err
	}
	var t serve.Token
	revoke := func() (err error) {
		if t, err = s.Revoke(in.arg(0)); err == serve.ErrUnknownToken {
			return &exitError{exitRefused, "there is no such token: " + visible(in.arg(0)),
				program + " token list shows the ids", tools.KindNotFound}
		}
		return unusableTokens(err)
	}
	dir, _ := in.dataDir() // tokens has looked
	if _, gone := os.Lstat(dir); gone == nil {
		err = in.recorded(revoke)
	} else { // to write that down would make it
		err = revoke()
	}
	if err != nil {
		return err
	}
	return in.answer(tokenRowOf(t), "revoked %s of %s\n", t.ID, visible(t.Principal))
}
