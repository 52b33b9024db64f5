package config

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// checkFleet checks the key name of [tools.fs.fleet]. A text that may hold a password is in no problem.
func checkFleet(name string, t Tools, add adder) {
	f := t.FS.Fleet
	key := "tools.fs.fleet." + name
	switch {
	case name == "database" && f.Database != "":
		checkDatabase(key, f.Database, add)
		if f.Contents == "" {
			add(key, "needs contents, which is not set", `add contents = "s3://BUCKET/PREFIX"`)
		}
		if !t.FS.CheckpointBeforeMutation && !t.FS.ReadOnly {
			add(key, "needs checkpoint_before_mutation = true, which is false", "a fleet shares checkpoints: add checkpoint_before_mutation = true to [tools.fs]")
		}
		if t.Sandbox.Mode != "off" {
			add(key, "does not go with [tools.sandbox]: there one path means another file for each sandbox", "leave one of the two out")
		}
	case name == "contents" && f.Contents != "":
		checkContents(key, f.Contents, add)
		if f.Database == "" {
			add(key, "needs database, which is not set", `add database = "postgres://USER@HOST/NAME?sslmode=verify-full"`)
		}
	}
}

// checkDatabase takes the address of a PostgreSQL database: postgres://USER@HOST/NAME, or with ?host= and the directory of a socket. Others
// could read along, and answer in its place, where a server elsewhere need not prove its name.
func checkDatabase(key, text string, add adder) {
	const form = "write it as postgres://USER@HOST/NAME?sslmode=verify-full, without a password"
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Path == "" || u.Path == "/" || u.Fragment != "" {
		add(key, "it is not the address of a PostgreSQL database", form)
		return
	}
	q := u.Query()
	if _, has := u.User.Password(); has || q.Has("password") || q.Has("sslpassword") {
		add(key, "it has a password, which would stand in this file and in what shows it", "take it out; it comes from PGPASSWORD, ~/.pgpass or a file that passfile= names")
		return
	}
	hosts := strings.Split(u.Host, ",")
	if q.Has("host") {
		hosts = strings.Split(q.Get("host"), ",")
	}
	for _, host := range hosts {
		host = (&url.URL{Host: host}).Hostname()
		if host != "" && !path.IsAbs(host) && !thisMachine(host) && !slices.Contains([]string{"verify-full", "verify-ca"}, q.Get("sslmode")) {
			add(key, "the server on "+quote(host)+" need not prove that it is the one", "add sslmode=verify-full, and sslrootcert=FILE where its certificate is of an authority of your own")
			return
		}
	}
}

// checkContents takes the address of a bucket: s3://BUCKET/PREFIX, with region= and endpoint= behind it.
func checkContents(key, text string, add adder) {
	const form = "write it as s3://BUCKET/PREFIX?region=REGION, or with ?endpoint=https://HOST"
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil || u.Fragment != "" {
		add(key, "it is not the address of a bucket", form+"; keys come from the environment or the shared credentials file")
		return
	}
	for name, values := range u.Query() {
		if name != "region" && name != "endpoint" || len(values) != 1 {
			add(key, "it has the parameter "+quote(name), form)
			return
		}
	}
	switch endpoint := u.Query().Get("endpoint"); {
	case strings.Contains(endpoint, "@"):
		add(key, "its endpoint has a user in it", "write endpoint=https://HOST")
	case endpoint != "":
		checkURL(key, endpoint, add)
	}
}

// thisMachine says that a host is this machine, whatever a server of names says.
func thisMachine(host string) bool {
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, host)
}

// Place names the database and the bucket, for people: without the user, files and all that may be a secret.
func (f Fleet) Place() (database, contents string) {
	if u, err := url.Parse(f.Database); err == nil && f.On() {
		host := u.Host
		if h := u.Query().Get("host"); h != "" {
			host = h
		}
		database = host + "/" + strings.TrimPrefix(u.Path, "/")
		if schema := u.Query().Get("search_path"); schema != "" {
			database += ", schema " + schema
		}
	}
	if u, err := url.Parse(f.Contents); err == nil && f.On() {
		contents = "s3://" + u.Host + u.Path
	}
	return database, contents
}
