package policy

import (
	"errors"
	"path"
	"slices"
	"strings"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
)

// The protected classes say by name which files keep secrets and which run code later.
//
// For example ".ssh/id_rsa" and ".env.local" are [Secret], ".git/hooks/pre-commit" and
// ".claude/settings.json" are [Exec], and a Makefile is [Marked]. Names say all: nothing is looked
// at, so a name that leads to nothing has its class too.
//
// Names MUST be folded (foldPath): here they are in small letters, without
// invisible characters, and without dots and blanks at their end. Everything in a directory of a class
// has that class. docs/internals/decisions/0041-protected-classes.md says why each name is here, and why some
// are not.
//
// These are tables and pure functions. They open nothing.

// A Class says how much a name is protected, each more than the one before.
type Class uint8

// The classes. Hard is no matter of names alone, and has none here: it is for what belongs to this
// program.
const (
	NoClass Class = iota
	Marked        // may run code when it is used: a question says so, and nothing else
	Exec          // runs code later, or tells an agent what to do: a change is asked about
	Secret        // keys and passwords: neither read nor changed
	Hard          // ours
)

// String is the class as the configuration, the answers and the records have it.
func (c Class) String() string {
	return [...]string{"", "marked", "exec", "secret", "hard"}[c]
}

// Holds says which classes there are, besides Marked.
type Holds struct{ Secret, Exec bool }

// Of gives the class of a path below dir, and of all that is above it up to dir. Both are folded
// and clean, dir is absolute, and path begins with it. The strongest class counts.
func (h Holds) Of(path, dir string) (worst Class) {
	for at := len(strings.TrimSuffix(dir, "/")); at < len(path); {
		rest := path[at+1:]
		end := strings.IndexByte(rest, '/')
		if end < 0 {
			end = len(rest)
		}
		switch c := entry(path[:at], rest[:end]); {
		case c == Secret && !h.Secret, c == Exec && !h.Exec:
		case (c == Marked || rest[:end] == "head") && end < len(rest): // a directory is something else
		default:
			worst = max(worst, c)
		}
		at += 1 + end
	}
	return worst
}

// isSecretName says whether a name in a directory is Secret by itself. parents is the result of parentsOf for the directory. It is for walks, and costs little.
func isSecretName(name string, parents nameClasses) bool {
	if lengths[name[0]]>>len(name)&1 == 1 && named[name] == Secret || parents != nil && parents[name] == Secret || secretName(name) {
		return true
	}
	of := original(name)
	if len(of) == len(name) || of == "" {
		return false
	}
	bare := strings.TrimPrefix(of, ".") // vim puts a dot before the name
	return named[of] == Secret || parents[of] == Secret || secretName(of) ||
		bare != "" && (parents[bare] == Secret || secretName(bare))
}

// nameClasses are the classes of some names.
type nameClasses map[string]Class

// parentsOf gives the names that have a class in one directory only, by its folded path. Most have none.
func parentsOf(dir string) nameClasses {
	last := dir[strings.LastIndexByte(dir, '/')+1:]
	for _, t := range tails[last] {
		if strings.HasSuffix(dir, t.dir) {
			return t.names
		}
	}
	return nil
}

// entry is the class of one name in a directory.
func entry(dir, name string) Class {
	if name == "" { // of the root directory
		return NoClass
	}
	parents := parentsOf(dir)
	if isSecretName(name, parents) {
		return Secret
	}
	of := common(name)
	c := max(named[name], parents[name], named[of], forms[inFormat(of)])
	switch {
	case c < Exec && execName(name):
		return Exec
	case c < Marked && strings.HasSuffix(name, ".mk"):
		return Marked
	}
	return c
}

// original is the name that a file was copied from, by how editors, packers and people call copies:
// id_rsa for id_rsa.txt, id_rsa.gz, id_rsa~, #id_rsa#, .id_rsa.swp and "id_rsa (2)".
func original(name string) string {
	if name[0] == '#' {
		name = strings.TrimSuffix(name[1:], "#")
	}
	name = strings.TrimPrefix(name, ".#")
	for {
		at := len(name) - 1
		for at > 0 && (letter(name[at]) || '0' <= name[at] && name[at] <= '9') {
			at--
		}
		if at < 1 || !isCopy(name[at+1:]) {
			return name
		}
		name = strings.TrimRight(name[:at], ".-_ (")
	}
}

// isCopy says whether the last word of a name says that it is a copy, or begins with a digit.
func isCopy(word string) bool {
	switch word {
	case "bak", "backup", "bkp", "old", "orig", "original", "save", "saved", "swp", "swo", "swn", "tmp", "temp",
		"txt", "copy", "prev", "previous", "new", "local", "gz", "bz2", "xz", "zst", "lz4", "zip", "tgz", "tar",
		"7z", "rpmsave", "rpmnew", "dpkg", "ucf":
		return true
	}
	return word < "a"
}

// common is the name that name is a local form of: lefthook.yml for lefthook-local.yml, jenkinsfile for
// jenkinsfile.prod, .bashrc for .bashrc.d.
func common(name string) string {
	if s, rest, ok := strings.Cut(name, "."); ok && strings.HasSuffix(s, "file") && named[s] != NoClass &&
		rest != "md" && rest != "txt" && rest != "rst" {
		return s
	}
	if s, ok := strings.CutSuffix(name, ".d"); ok && name[0] == '.' {
		return s
	}
	for _, local := range []string{".local", "-local"} {
		if s, rest, ok := strings.Cut(name, local); ok && s != "" && (rest == "" || rest[0] == '.') {
			return s + rest
		}
	}
	return name
}

// secretName tries the forms that no table can list: endings, .env and its kin, SSH keys.
func secretName(name string) bool {
	switch name[0] {
	case '.':
		if rest, ok := strings.CutPrefix(name, ".env"); ok {
			return isEnv(rest)
		}
		if strings.HasSuffix(name, "history") {
			return true // of a shell or a database
		}
	case 'i':
		if rest, ok := strings.CutPrefix(name, "id_"); ok && isSSHKey(rest) {
			return true
		}
	case 'c':
		if strings.HasPrefix(name, "client_secret") && strings.HasSuffix(name, ".json") {
			return true
		}
	case 's':
		if strings.HasPrefix(name, "ssh_host_") && strings.HasSuffix(name, "_key") {
			return true
		}
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return strings.HasSuffix(name, "_rsa") || strings.HasSuffix(name, "_ed25519") // of deploy_rsa
	}
	if len(name)-dot > len(".keychain-db") {
		return false
	}
	switch stem := name[:dot]; name[dot+1:] {
	case "key":
		return !public(stem)
	case "pem":
		return namesKey(stem) && !public(stem)
	case "p12", "pfx", "p8", "jks", "jceks", "bks", "keystore", "ppk", "kdbx", "keytab", "agekey",
		"keychain", "keychain-db":
		return true
	}
	return false
}

// isEnv judges the rest of a name behind ".env": ".env.local" and ".env-prod" hold secrets, ".envrc" and
// ".environment" are other files, and ".env.example" is there to be read.
func isEnv(rest string) bool {
	if rest == "" {
		return true
	}
	if letter(rest[0]) {
		return false
	}
	switch rest[strings.LastIndexAny(rest, ".-_")+1:] {
	case "example", "examples", "sample", "samples", "template", "templates", "tmpl", "tpl", "dist",
		"default", "defaults", "schema", "ts": // .env.d.ts declares types
		return false
	}
	return true
}

// isSSHKey judges the rest of a name behind "id_": a private key, and copies of it, but not its public half nor
// a source file that is about one.
func isSSHKey(rest string) bool {
	if public(rest) {
		return false
	}
	for _, kind := range []string{"rsa", "dsa", "ecdsa", "ed25519", "xmss"} {
		more, ok := strings.CutPrefix(rest, kind)
		if !ok || more != "" && letter(more[0]) {
			continue
		}
		_, ext, has := strings.Cut(more, ".")
		switch ext[strings.LastIndexByte(ext, '.')+1:] {
		case "", "bak", "backup", "old", "orig", "save", "swp", "tmp", "pem", "key", "ppk", "asc", "enc":
			return true
		}
		return !has
	}
	return false
}

// namesKey says whether a word of a stem says "private key": *.pem is mostly a certificate.
func namesKey(stem string) bool {
	for w := ""; stem != ""; {
		switch w, stem = word(stem); w {
		case "monkey", "turkey", "donkey", "hockey", "jockey", "whiskey", "keyboard":
			continue
		}
		if strings.HasSuffix(w, "key") || strings.HasPrefix(w, "key") || strings.HasPrefix(w, "priv") {
			return true
		}
	}
	return false
}

// public says whether a stem says "public".
func public(stem string) bool {
	for w := ""; stem != ""; {
		if w, stem = word(stem); strings.HasPrefix(w, "pub") || strings.HasSuffix(w, "pub") {
			return true
		}
	}
	return false
}

// word cuts the first word off a stem.
func word(stem string) (w, rest string) {
	at := 0
	for at < len(stem) && letter(stem[at]) {
		at++
	}
	return stem[:at], stem[min(at+1, len(stem)):]
}

// letter is for folded names: ASCII letters and all beyond ASCII.
func letter(c byte) bool { return 'a' <= c && c <= 'z' || c >= 0x80 }

// execName tries the forms that no table can list: bare repositories, workspaces, run configurations, files that
// shells and vims read at their start, rules for agents, and the servers that an agent starts.
func execName(name string) bool {
	for _, end := range []string{".git", ".code-workspace", ".sublime-project", ".run.xml"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	if stem, ok := strings.CutSuffix(inFormat(name), ".yml"); ok {
		for w := ""; stem != ""; {
			if w, stem = word(stem); w == "mcp" {
				return true
			}
		}
		return false
	}
	stem, ok := strings.CutPrefix(common(name), ".")
	if !ok {
		return false
	}
	for _, end := range []string{"shrc", "vimrc", "profile", "login", "logout"} {
		if strings.HasSuffix(stem, end) {
			return true
		}
	}
	stem, _, _ = strings.Cut(stem, "-") // .roorules-code
	return strings.HasSuffix(stem, "rules")
}

// protectedNames are the names of each class. A name has its class in any directory, but behind the end of a directory's path in that directory
// alone: ".aws/credentials" has the class, and "src/credentials" has not. A line that begins with such a directory holds for it alone. A dot in the
// middle stands for a blank.
var protectedNames = map[Class]string{
	Secret: `
		.ssh .gnupg .azure .password-store .netrc _netrc .authinfo .pgpass .my.cnf .mylogin.cnf .npmrc .pypirc
		.git-credentials .htpasswd .vault-token .databrickscfg .s3cfg .boto .dockercfg .terraformrc terraform.rc
		credentials.tfrc.json rclone.conf .credentials.json oauth_creds.json application_default_credentials.json
		service-account.json service_account.json service-account-key.json serviceaccountkey.json .mozilla .thunderbird
		.librewolf key3.db key4.db cookies.sqlite cookies.binarycookies .claude.json .credentials .dev.vars .sentryclirc
		.cloudflared .ngrok2 deploy_key secring.gpg wallet.dat .histfile fish_history .lesshst .viminfo .kube/config
		.kube/cache .docker/config.json .cargo/credentials .cargo/credentials.toml .gem/credentials .m2/settings.xml
		.m2/settings-security.xml .gradle/gradle.properties .streamlit/secrets.toml .microsoft/usersecrets solana/id.json
		run/secrets .oci/config sops/age/keys.txt .cache/huggingface/token .cache/huggingface/stored_tokens .huggingface/token
		.fly/config.yml .composer/auth.json .codex/auth.json .nuget/nuget/nuget.config github·cli/hosts.yml
		.config/containers/auth.json .config/gh/hosts.yml .config/glab-cli/config.yml .config/git/credentials
		.config/composer/auth.json .local/share/keyrings .local/share/kwalletd .local/share/opencode/auth.json
		snap/chromium/common/chromium library/keychains application·support/google/chrome local/google/chrome
		local/microsoft/edge roaming/mozilla/firefox appdata/roaming/gcloud etc/ssl/private
		.aws/ credentials config sso cli
		.config/ gcloud hub op doctl ngrok github-copilot google-chrome google-chrome-beta chromium bravesoftware
		.config/ microsoft-edge vivaldi opera
		.var/app/ org.mozilla.firefox com.google.chrome org.chromium.chromium
		application·support/ firefox chromium bravesoftware microsoft·edge
		etc/ shadow shadow- gshadow gshadow- wireguard
		etc/kubernetes/ admin.conf super-admin.conf kubelet.conf controller-manager.conf scheduler.conf pki`,
	// Read by a shell, an editor or a program at its start; git's own and what runs at a commit, where a file HEAD makes a repository of the
	// directory beside it; obeyed by an agent; run at a push, at a start or by the clock.
	Exec: `
		.bash_aliases .bash_completion .zshenv .zcompdump .inputrc .envrc .direnvrc .oh-my-zsh .p10k.zsh .fzf.bash .fzf.zsh
		.nvm .mise .mise.toml mise.toml .xinitrc .xsession .xsessionrc .pam_environment .vnc .forward .procmailrc .exrc .vim
		.nvim.lua .dir-locals.el .dir-locals-2.el .emacs .emacs.el .emacs.d .helix .ycm_extra_conf.py .tmux.conf .screenrc
		.gdbinit .lldbinit .pdbrc .irbrc .pryrc .yarnrc .yarnrc.yml sitecustomize.py usercustomize.py profile.ps1
		microsoft.powershell_profile.ps1 head .git .gitconfig .gitmodules .husky .githooks .pre-commit-config.yml lefthook.yml
		.lefthook.yml .overcommit.yml .hg .hgrc .jj claude_desktop_config.json .claude .claude-plugin .cursor .codex .copilot
		.gemini .zed .windsurf .continue .roo .cline .roomodes .amazonq .kiro .junie .opencode .qwen .crush .goose .augment
		.augment-guidelines .trae .agent .agents .codeium .factory .kilocode .kilocodemodes .continuerc.json .aiassistant
		.openhands .qoder .tabnine .serena .idx .replit .fleet .theia .codesandbox .gitpod.yml .aider.conf.yml .devcontainer
		.devcontainer.json claude.md agent.md agents.md agents.override.md skill.md gemini.md qwen.md crush.md warp.md
		replit.md airules.md .goosehints copilot-instructions.md opencode.json crush.json .circleci .buildkite .woodpecker
		.gitlab-ci.yml .travis.yml .drone.yml .cirrus.yml .semaphore .woodpecker.yml .tekton .teamcity .builds .build.yml
		.azure-pipelines bamboo-specs action.yml appveyor.yml .appveyor.yml azure-pipelines.yml bitbucket-pipelines.yml
		cloudbuild.yml buildspec.yml jenkinsfile crontab anacrontab cron.d cron.hourly cron.daily cron.weekly cron.monthly
		launchagents launchdaemons ld.so.preload rc.local .gradle/init.gradle .gradle/init.d .config/git/config
		.config/git/attributes .config/systemd/user .config/code/user/tasks.json .config/code/user/settings.json .local/bin
		.yarn/releases .yarn/plugins hooks/hooks.json start·menu/programs/startup .vs/tasks.vs.json .vs/launch.vs.json
		.gitlab/ci .gitea/workflows .forgejo/workflows systemd/system systemd/user cron/crontabs cron/tabs var/spool/cron
		xdg/autostart udev/rules.d etc/apt/apt.conf etc/apt/apt.conf.d etc/networkmanager/dispatcher.d
		.cargo/ config config.toml env bin
		.config/ fish nushell elvish xonsh zsh tmux nvim vim emacs helix zed amp goose autostart environment.d
		.config/ plasma-workspace i3 sway hypr openbox bspwm awesome xmonad qtile direnv mise
		.local/share/ applications dbus-1 systemd
		.vscode/ tasks.json launch.json settings.json c_cpp_properties.json
		.idea/ runconfigurations workspace.xml watchertasks.xml startup.xml externaldependencies.xml tools
		.github/ workflows actions instructions prompts agents skills copilot chatmodes hooks
		etc/ init.d environment profile profile.d bash.bashrc bashrc zshrc zshenv zprofile zsh csh.cshrc gitconfig sudoers
		etc/ sudoers.d pam.d ld.so.conf ld.so.conf.d modprobe.d logrotate.d
		etc/ssh/ sshd_config sshd_config.d ssh_config ssh_config.d`,
	Marked: `
		package.json makefile gnumakefile justfile .justfile rakefile gemfile setup.py setup.cfg pyproject.toml conftest.py
		noxfile.py tox.ini build.gradle build.gradle.kts settings.gradle settings.gradle.kts pom.xml build.rs cmakelists.txt
		dockerfile containerfile docker-compose.yml compose.yml taskfile.yml vagrantfile flake.nix composer.json cargo.toml
		gradlew gradlew.bat mvnw mvnw.cmd gradle-wrapper.jar gradle-wrapper.properties .bazelrc .pnpmfile.cjs .pnp.cjs
		bunfig.toml rust-toolchain.toml .pylintrc .rubocop.yml .luacheckrc .eslintrc.js eslint.config.js tools/bazel`,
}

// A tail is a directory by the end of its path, and the names that have a class in it alone.
type tail struct {
	dir   string // begins with a slash
	names nameClasses
}

// The names of the table: those of any directory; those of Exec and Marked among them that may be written in several formats, as inFormat gives
// them; and those of one directory, by its last name.
var (
	named = nameClasses{}
	forms = nameClasses{}
	tails = map[string][]tail{}

	// The lengths of the names of any directory, as bits, by their first byte. Most entries of a walk need no look at named then.
	lengths [256]uint64
)

func init() {
	for class, lines := range protectedNames {
		for line := range strings.Lines(lines) {
			dir, names, all := strings.Cut(strings.TrimSpace(line), "/ ")
			if !all {
				dir, names = "", dir
			}
			for name := range strings.FieldsSeq(names) {
				name, into := path.Join(dir, name), named
				if at := strings.LastIndexByte(name, '/'); at >= 0 {
					into = namesIn("/" + strings.ReplaceAll(name[:at], "·", " "))
					name = name[at+1:]
				} else if form := inFormat(name); form != "" && class < Secret {
					forms[form] = max(forms[form], class)
				}
				name = strings.ReplaceAll(name, "·", " ")
				into[name] = max(into[name], class)
				if class == Secret {
					lengths[name[0]] |= 1 << len(name)
				}
			}
		}
	}
}

// namesIn gives the names of a directory, the longest dir of those that end alike first.
func namesIn(dir string) nameClasses {
	last := dir[strings.LastIndexByte(dir, '/')+1:]
	at := 0
	for _, t := range tails[last] {
		if t.dir == dir {
			return t.names
		}
		if len(t.dir) > len(dir) {
			at++
		}
	}
	names := nameClasses{}
	tails[last] = slices.Insert(tails[last], at, tail{dir, names})
	return names
}

// inFormat is a name with the ending of its kind of format: x.yml for x.toml and x.json, x.js for
// x.mjs. "" for a name in another format.
func inFormat(name string) string {
	dot := strings.LastIndexByte(name, '.')
	if dot < 1 {
		return ""
	}
	switch name[dot+1:] {
	case "yml", "yaml", "toml", "json", "jsonc", "json5", "jsonnet", "star":
		return name[:dot] + ".yml"
	case "js", "cjs", "mjs", "ts", "cts", "mts":
		return name[:dot] + ".js"
	}
	return ""
}

// longNames are the names that may have a short form on NTFS.
func longNames() (out []string) {
	for n, c := range named {
		if c > Marked {
			out = append(out, n)
		}
	}
	for _, of := range tails {
		for _, t := range of {
			for n := range t.names {
				out = append(out, n)
			}
		}
	}
	return append(out, ".env", ".bashrc", ".zshrc", ".profile", ".bash_profile", ".vimrc", ".mcp.json", ".bash_history")
}

// ClassOptions says which classes of names hold, and where they do not.
type ClassOptions struct {
	Holds

	// Lifted are absolute globs, exact as those of an allow list. A path that one covers has no class, nor has a path
	// below it. A name is lifted by itself: a link to a lifted file is not.
	Lifted []string
	// Root is where the work is: the names of that directory and of those above it make no class.
	Root      string
	Canonical func(path string) string // as in Options
}

// Classes are the protected classes, as the operator wants them. nil has none.
// It does not change, and is safe for concurrent use.
type Classes struct {
	holds      Holds
	lifted     node
	roots      []string // spelled, and with links followed
	shortNames []shortName
}

// NewClasses compiles the globs. The error joins one *RuleError for each bad one.
func NewClasses(o ClassOptions) (*Classes, error) {
	if o.Canonical == nil {
		o.Canonical = path.Clean
	}
	c := &Classes{holds: o.Holds}
	var errs []error
	for _, pattern := range o.Lifted {
		g, err := glob.CompileRule(pattern, nil)
		if err != nil {
			errs = append(errs, ruleError(pattern, err))
			continue
		}
		c.lifted.insertGlob(g, denied, o.Canonical)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if o.Root != "" {
		c.roots = []string{path.Clean(o.Root), path.Clean(o.Canonical(o.Root))}
	}
	for _, name := range longNames() {
		if s, ok := newShortName(name); ok {
			c.shortNames = append(c.shortNames, s)
		}
	}
	return c, nil
}

// Of gives the class of an absolute name, by itself: links are not followed. The worst
// reading of a name that some file system may read in several ways counts.
func (c *Classes) Of(name string) Class {
	if c == nil || !strings.HasPrefix(name, "/") {
		return NoClass
	}
	name = path.Clean(name)
	dir := "/"
	for _, r := range c.roots {
		if (name == r || strings.HasPrefix(name, strings.TrimSuffix(r, "/")+"/")) && len(r) > len(dir) {
			dir = r
		}
	}
	dir = strings.TrimSuffix(dir, "/")
	top, rest := foldPath(dir), name[len(dir):] // above, no reading of a name counts either
	folded := foldPath(rest)
	worst := c.holds.Of(top+folded, top)
	if ambiguous(rest) {
		for _, reading := range []string{folded, asNTFS(folded)} {
			longer, ok := expandShortNames(reading, c.shortNames)
			if !ok {
				return Secret // too many readings to try
			}
			for _, r := range append(longer, reading) {
				worst = max(worst, c.holds.Of(top+r, top))
			}
		}
	}
	if worst > NoClass && c.Lifted(name) {
		return NoClass
	}
	return worst
}

// Lifted says whether no class holds for a clean real name.
func (c *Classes) Lifted(name string) bool { return c.lifted.refuses(name) != none }

// Worst is the strongest class of an object by any of its names: as it was spelled, its true name, and those of the
// links on the way; with the first name that has it.
func (c *Classes) Worst(o guardfs.Object) (by string, worst Class) {
	names := append([]string{o.Spelled, o.True}, o.Also...)
	for _, hop := range o.Hops {
		names = append(append(names, hop.Name), hop.Also...)
	}
	for _, name := range names {
		if is := c.Of(name); is > worst {
			by, worst = name, is
		}
	}
	return by, worst
}

// isSecret says whether a name, or one of those that it has on other mounts, is secret.
func (c *Classes) isSecret(name string, also []string) bool {
	if c == nil || !c.holds.Secret {
		return false
	}
	if c.Of(name) == Secret {
		return true
	}
	for _, other := range also {
		if c.Of(other) == Secret {
			return true
		}
	}
	return false
}

// secretsIn tells which entries of one directory, by one of its names, are secrets.
type secretsIn struct {
	classes   *Classes
	dir       string
	ambiguous bool // dir is
	parents   nameClasses
}

func (c *Classes) in(dir string) *secretsIn {
	if c == nil || !c.holds.Secret {
		return nil
	}
	return &secretsIn{c, dir, ambiguous(dir), parentsOf(foldPath(dir))}
}

// verdict gives the verdict for a directory in which all is open but secrets, and so it is below.
func (s *secretsIn) verdict() guardfs.DirVerdict {
	if s == nil {
		return guardfs.DirVerdict{All: true}
	}
	return guardfs.DirVerdict{All: true, Hides: s.hides,
		Below: func(name string) (guardfs.DirVerdict, bool) {
			if s.hides(name) {
				return guardfs.DirVerdict{}, true
			}
			return s.classes.in(strings.TrimSuffix(s.dir, "/") + "/" + name).verdict(), true
		}}
}

// hides judges one entry. The directory itself is not secret.
func (s *secretsIn) hides(name string) bool {
	if s == nil {
		return false
	}
	if !s.ambiguous {
		var small [64]byte
		if n := foldPlain(name, &small); n > 0 {
			if !isSecretName(string(small[:n]), s.parents) {
				return false
			}
		} else if folded := foldName(name); folded != "" && !isSecretName(folded, s.parents) {
			return false
		}
	}
	return s.classes.Of(strings.TrimSuffix(s.dir, "/")+"/"+name) == Secret
}

// foldPlain folds a name of ASCII that is not ambiguous into small, without an allocation. It gives its length, or 0
// where foldName must fold it.
func foldPlain(name string, small *[64]byte) int {
	if len(name) == 0 || len(name) > len(small) || name[len(name)-1] == '.' || name[len(name)-1] == ' ' {
		return 0
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c-'A' < 26:
			c += 'a' - 'A'
		case c >= '~', c == '\\', c == ':':
			return 0
		}
		small[i] = c
	}
	return len(name)
}
