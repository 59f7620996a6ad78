// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"fmt"
	"path/filepath"
	"strings"
)

// links names the programs in the chroot of tasks.
var links = []string{
	"sh", "sleep", "env", "cat", "stat", "printf", "mkdir", "ln", "chmod", "dirname", "kill", "stty", "head", "wc", "ls", "true", "false", "date", "rm", "id", "nc", "nslookup",
}

// configuration returns the configuration of the agent. The field extra becomes a separate file, because Nomad
// merges files.
func (a *agent) configuration() string {
	var out, chroot strings.Builder
	chroot.WriteString("    \"/etc/passwd\" = \"/etc/passwd\"\n    \"/etc/group\" = \"/etc/group\"\n")
	if a.chroot != "" {
		chroot.WriteString(chrootOf(a.chroot))
	} else {
		for _, name := range links {
			fmt.Fprintf(&chroot, "    %q = \"/bin/%s\"\n", filepath.Join(a.dir, "bin", name), name)
		}
	}
	fmt.Fprintf(&out, `
name      = %q
data_dir  = %q
bind_addr = "127.0.0.1"
advertise {
  http = "127.0.0.1"
  rpc  = "127.0.0.1"
  serf = "127.0.0.1"
}
log_level = "INFO"
disable_update_check = true
leave_on_interrupt = false
leave_on_terminate = false
ports {
  http = %d
  rpc  = %d
  serf = %d
}
acl {
  enabled = %t
  token_min_expiration_ttl = "1s"
}
`, filepath.Base(a.dir), filepath.Join(a.dir, "data"), a.port, a.port+1, a.port+2, a.acl)
	if a.joins == nil {
		out.WriteString(`
server {
  enabled = true
  bootstrap_expect = 1
  default_scheduler_config { memory_oversubscription_enabled = true }
}
`)
	}
	if !a.server {
		fmt.Fprintf(&out, `
client {
  enabled = true
  cni_path = "/usr/lib/cni"
  network_interface = "lo"
  gc_max_allocs = 500
  gc_disk_usage_threshold = 99
  options = { "fingerprint.denylist" = "env_aws,env_azure,env_gce,env_digitalocean,landlock" }
  chroot_env {
%s  }
%s}
plugin "raw_exec" {
  config { enabled = true }
}
`, chroot.String(), a.servers())
	}
	if a.tls != nil {
		fmt.Fprintf(&out, `
tls {
  http = true
  rpc  = true
  ca_file   = %q
  cert_file = %q
  key_file  = %q
  verify_https_client = true
}
`, a.tls.file("ca.pem"), a.tls.file("agent.pem"), a.tls.file("agent-key.pem"))
	}
	return out.String()
}

func (a *agent) servers() string {
	if a.joins == nil {
		return ""
	}
	return fmt.Sprintf("  servers = [\"127.0.0.1:%d\"]\n", a.joins.port+1)
}
