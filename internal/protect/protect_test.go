package protect

import (
	"strings"
	"testing"
)

// TestOf: what has a class, and what looks like it and has none.
func TestOf(t *testing.T) {
	t.Parallel()
	for class, names := range map[Class]string{
		Secret: `.ssh .ssh/config .ssh/authorized_keys .gnupg/x/y .env .env.local .env.production .env-prod .env_x .env~
			.env.local.bak .env/lib/x id_rsa id_ed25519 id_ed25519_work id_rsa.bak id_ecdsa_sk id_rsa2 id_rsa.pem
			server.key a.key privkey.pem server-key.pem client_key.pem rsakey.pem private.pem keys.pem key.pem x.p12 x.pfx
			release.keystore app.jks AuthKey_1.p8 x.ppk pw.kdbx .netrc .npmrc .pypirc .git-credentials .aws/credentials
			.aws/sso/cache/x.json .azure/accessTokens.json .config/gcloud/x .kube/config .docker/config.json
			.config/gh/hosts.yml .terraform.d/credentials.tfrc.json .config/google-chrome/default/cookies
			.mozilla/firefox/a.default/logins.json library/application support/google/chrome/default
			client_secret_123.apps.json .claude/.credentials.json .codex/auth.json .cargo/credentials.toml
			appdata/local/google/chrome/user data/x login.keychain-db library/keychains/x etc/ssh/ssh_host_rsa_key
			.config/containers/auth.json .config/sops/age/keys.txt .cache/huggingface/token .huggingface/token
			snap/chromium/common/chromium/default/cookies
			.config/github-copilot/apps.json`,
		Exec: `.git head sub/head .git/config .git/hooks/pre-commit .git/modules/x/config sub/.git/hooks/x bare.git/hooks/x .gitmodules
			.husky/pre-commit .bashrc .zshrc .profile .envrc .config/autostart/x.desktop cron.d/x crontab
			.config/systemd/user/x.service etc/systemd/system/x.service library/launchagents/x.plist .mcp.json .claude
			.claude/settings.json .cursor/mcp.json .vscode/tasks.json .vscode/launch.json .vscode/settings.json
			.idea/runconfigurations/x.xml .codex/config.toml .gemini/settings.json .zed/settings.json claude.md docs/agents.md
			gemini.md .cursorrules .github/copilot-instructions.md .github/workflows/x.yml .gitlab-ci.yml jenkinsfile
			.circleci/config.yml x.code-workspace .pre-commit-config.yaml .config/fish/config.fish
			.cargo/config.toml .devcontainer/devcontainer.json .git/x.mk
			.agents/skills/x/skill.md .cirrus.yml .semaphore/x.yml azure-pipelines.yaml var/spool/cron/root anacrontab
			.config/code/user/tasks.json .config/environment.d/x.conf mise.toml .hg/hgrc .jj/repo/config.toml .vim/plugin/x.vim`,
		Marked: `package.json makefile sub/makefile rules.mk setup.py pyproject.toml dockerfile`,
		None: `a.go head/a.go heads .env.example .env.sample .env.local.example .env.template .env.dist .env.defaults .env.d.ts .envoy
			.environment env.go id_rsa.pub id_ed25519.pub id_rsa.go id_rsa_test.py id_token.py etc/ssh/ssh_host_rsa_key.pub ssh_host_key_test.go .cache/huggingface/x containers/auth.json user/tasks.json agent.md id_rsax cert.pem ca-bundle.pem
			server.pem monkey.pem turkey-ca.pem keyboard.pem public.key server.pub.key public-key.pem pubkey.pem keys.go key.go
			monkey.go credentials credentials.go src/credentials/x.go config config.json docker/config.json kube/config
			aws/credentials .aws/task-definition.json .docker/dockerfile.md hosts.yml gh/hosts.yml .vscode/snippets.json
			.idea/modules.xml .github/issue_template.md .github/dependabot.yml .gitignore .gitattributes .gitkeep
			workflows/x.yml hooks/x.go systemd/x.go src/google/chrome/x.cc makefile.md makefile/x package.json/x
			package-lock.json autostart/x.go claude.go readme.md library/cookies/x.go profile .dockerignore .editorconfig`,
	} {
		for name := range strings.FieldsSeq(strings.NewReplacer("application support", "application_support", "user data", "user_data").
			Replace(strings.ToLower(names))) {
			name = strings.NewReplacer("application_support", "application support", "user_data", "user data").Replace(name)
			if got := (Holds{true, true}).Of("/ws/"+name, "/"); got != class {
				t.Errorf("%s is %q, want %q", name, got, class)
			}
			dir, last := "/ws", name
			if i := strings.LastIndexByte(name, '/'); i >= 0 {
				dir, last = "/ws/"+name[:i], name[i+1:]
			}
			above := (Holds{true, true}).Of(dir, "/") == Secret
			if got := IsSecret(last, Parents(dir)); !above && got != (class == Secret) {
				t.Errorf("IsSecret(%s in %s) is %v", last, dir, got)
			}
		}
	}
}

// TestHolds: without a class what is left of a name counts.
func TestHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		holds Holds
		name  string
		want  Class
	}{
		{Holds{Exec: true}, "/ws/.claude/.credentials.json", Exec},
		{Holds{Exec: true}, "/ws/.env", None},
		{Holds{Secret: true}, "/ws/.git/config", None},
		{Holds{Secret: true}, "/ws/.git/makefile", Marked},
		{Holds{}, "/ws/makefile", Marked},
		{Holds{true, true}, "/", None},
	} {
		if got := c.holds.Of(c.name, "/"); got != c.want {
			t.Errorf("%s with %v is %q, want %q", c.name, c.holds, got, c.want)
		}
	}
	// What is above, and what the directory itself is called, does not count.
	if got := (Holds{true, true}).Of("/u/.claude/wt/a.go", "/u/.claude/wt"); got != None {
		t.Errorf("below the root: %q", got)
	}
}
