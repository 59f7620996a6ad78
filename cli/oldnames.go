// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// oldName is a flag or an environment variable of another virtual kubelet program. Exactly one of now, field, nothing and gone is set, and
// describes its effect here.
type oldName struct {
	// name is a flag, with its dashes, or a variable.
	name string
	// of is the program that has this name.
	of string
	// provider is the provider to which the name belongs; "" for a name about the node.
	provider string
	// now is the flag of this program for the value, with dashes, or the variable of the provider that receives it.
	now string
	// field is the field of the provider's configuration that the variable sets; the provider reads the variable itself.
	field string
	// nothing is the reason why the name has no effect. Its use is a warning.
	nothing string
	// gone names the replacement. Using the old flag is an error.
	gone string
	// same is a value that asks for the default behavior: with this value, a flag without effect causes no warning.
	same string
	// boolean means that the flag needs no value.
	boolean bool
}

// Programs with these names.
const (
	ofCommon = "virtual-kubelet until 1.11, and programs made of it"
	ofAuth   = "node-cli, azure-aci"
	ofACI    = "azure-aci"
	ofECI    = "alibabacloud-eci"
	ofTensil = "tensile-kube"
	ofStack  = "virtual-kubelet-stackpath"
	ofBatch  = "azure-batch"
	ofZun    = "openstack-zun"
)

// Reasons shared by several names.
const (
	insteadOfExporters = "traces are sent by OpenTelemetry: use --trace-endpoint"
	noCacheTimes       = "answers of the API server are kept for the times that a kubelet has by default"
)

// oldNames is the table of all old names. A new row needs no further code, except that a provider must read its field.
var oldNames = []oldName{
	{name: "--taint", of: ofCommon, now: "--taint-key"},
	{name: "--namespace", of: ofCommon, nothing: "the pods of a node are in all namespaces"},
	{name: "--enable-node-lease", of: ofCommon, boolean: true, nothing: "the node always has a lease"},
	{name: "--trace-exporter", of: ofCommon, gone: insteadOfExporters + " in the place of jaeger, ocagent and zpages"},
	{name: "--client-verify-ca", of: ofAuth, now: "--client-ca-file"},
	{name: "--authentication-token-webhook", of: ofAuth, boolean: true, same: "true", nothing: "the API server is always asked for tokens, and the kubelet API is never open by itself"},
	{name: "--no-verify-clients", of: ofAuth, boolean: true, same: "false", nothing: "callers without a client certificate show a token"},
	{name: "--authentication-token-webhook-cache-ttl", of: ofAuth, nothing: noCacheTimes},
	{name: "--authorization-webhook-cache-authorized-ttl", of: ofAuth, nothing: noCacheTimes},
	{name: "--authorization-webhook-cache-unauthorized-ttl", of: ofAuth, nothing: noCacheTimes},
	{name: "DEFAULTNODE_NAME", of: "node-cli", now: "--nodename"},
	{name: "VK_TAINT_KEY", of: "nomad, in its README", nothing: "the program with that README does not read it either: use --taint-key"},
	{name: "JAEGER_AGENT_ENDPOINT", of: ofCommon, nothing: insteadOfExporters},
	{name: "JAEGER_COLLECTOR_ENDPOINT", of: ofCommon, nothing: insteadOfExporters},
	{name: "JAEGER_ENDPOINT", of: ofCommon, nothing: insteadOfExporters},
	{name: "JAEGER_PASSWORD", of: ofCommon, nothing: insteadOfExporters},
	{name: "JAEGER_USER", of: ofCommon, nothing: insteadOfExporters},
	{name: "OCAGENT_ENDPOINT", of: ofCommon, nothing: insteadOfExporters},
	{name: "OCAGENT_INSECURE", of: ofCommon, nothing: insteadOfExporters},
	{name: "ZPAGES_PORT", of: ofCommon, nothing: insteadOfExporters},

	{name: "AZURE_AUTH_LOCATION", of: ofACI, provider: "aci", field: "credentials.file"},
	{name: "AKS_CREDENTIAL_LOCATION", of: ofACI, provider: "aci", field: "credentials.file"},
	{name: "VIRTUALNODE_USER_IDENTITY_CLIENTID", of: ofACI, provider: "aci", field: "credentials.identityClientID"},
	{name: "ACI_RESOURCE_GROUP", of: ofACI, provider: "aci", field: "resourceGroup"},
	{name: "ACI_REGION", of: ofACI, provider: "aci", field: "region"},
	{name: "ACI_QUOTA_CPU", of: ofACI, provider: "aci", field: "capacity.cpu"},
	{name: "ACI_QUOTA_MEMORY", of: ofACI, provider: "aci", field: "capacity.memory"},
	{name: "ACI_QUOTA_POD", of: ofACI, provider: "aci", field: "capacity.pods"},
	{name: "ACI_VNET_SUBSCRIPTION_ID", of: ofACI, provider: "aci", field: "network.subscriptionID"},
	{name: "ACI_VNET_RESOURCE_GROUP", of: ofACI, provider: "aci", field: "network.resourceGroup"},
	{name: "ACI_VNET_NAME", of: ofACI, provider: "aci", field: "network.vnet"},
	{name: "ACI_SUBNET_NAME", of: ofACI, provider: "aci", field: "network.subnet"},
	{name: "KUBE_DNS_IP", of: ofACI, provider: "aci", field: "network.clusterDNS"},
	{name: "LOG_ANALYTICS_ID", of: ofACI, provider: "aci", field: "logAnalytics.workspaceID"},
	{name: "LOG_ANALYTICS_KEY", of: ofACI, provider: "aci", field: "logAnalytics.workspaceKey"},
	{name: "LOG_ANALYTICS_AUTH_LOCATION", of: ofACI, provider: "aci", field: "logAnalytics.file"},
	{name: "ACI_SUBNET_CIDR", of: ofACI, provider: "aci", nothing: "this provider makes no subnets: make it, and delegate it to Microsoft.ContainerInstance/containerGroups"},
	{name: "MASTER_URI", of: ofACI, provider: "aci", field: "network.kubeProxy.apiServer"},
	{name: "CLUSTER_CIDR", of: ofACI, provider: "aci", field: "network.kubeProxy.clusterCIDR"},
	{name: "ENABLE_REAL_TIME_METRICS", of: ofACI, provider: "aci", nothing: "set stats: true in the file of --provider-config, or VKUBELET_ACI_STATS=true, for kubectl top"},
	{name: "CLUSTER_RESOURCE_ID", of: ofACI, provider: "aci", nothing: "the logs of pods have no metadata of the cluster"},
	{name: "ACI_EXTRA_USER_AGENT", of: ofACI, provider: "aci", nothing: "requests name this program"},

	{name: "ECI_REGION", of: ofECI, provider: "eci", field: "region"},
	{name: "ECI_ACCESS_KEY", of: ofECI, provider: "eci", field: "accessKeyID"},
	{name: "ECI_SECRET_KEY", of: ofECI, provider: "eci", field: "accessKeySecret"},
	{name: "ECI_SECURITY_GROUP", of: ofECI, provider: "eci", field: "securityGroupID"},
	{name: "ECI_VSWITCH", of: ofECI, provider: "eci", field: "vSwitchIDs"},
	{name: "ECI_CLUSTER_NAME", of: ofECI, provider: "eci", field: "clusterName"},
	{name: "ECI_QUOTA_CPU", of: ofECI, provider: "eci", field: "capacity.cpu"},
	{name: "ECI_QUOTA_MEMORY", of: ofECI, provider: "eci", field: "capacity.memory"},
	{name: "ECI_QUOTA_POD", of: ofECI, provider: "eci", field: "capacity.pods"},

	{name: "SP_API_HOST", of: ofStack, provider: "stackpath", field: "endpoint"},
	{name: "SP_STACK_ID", of: ofStack, provider: "stackpath", field: "stackID"},
	{name: "SP_CLIENT_ID", of: ofStack, provider: "stackpath", field: "clientID"},
	{name: "SP_CLIENT_SECRET", of: ofStack, provider: "stackpath", field: "clientSecret"},
	{name: "SP_CITY_CODE", of: ofStack, provider: "stackpath", field: "cityCode"},
	{name: "SP_CONFIG_LOCATION", of: ofStack, provider: "stackpath", nothing: "write its fields into the file of --provider-config"},
	{name: "AZURE_BATCH_ACCOUNT_NAME", of: ofBatch, provider: "azurebatch", field: "account"},
	{name: "AZURE_BATCH_ACCOUNT_LOCATION", of: ofBatch, provider: "azurebatch", field: "location"},
	{name: "AZURE_BATCH_POOLID", of: ofBatch, provider: "azurebatch", field: "pool"},
	{name: "AZURE_CREDENTIALS_LOCATION", of: ofBatch, provider: "azurebatch", nothing: "set credentials.file in the file of --provider-config, or VKUBELET_AZUREBATCH_CREDENTIALS_FILE"},
	{name: "AZURE_BATCH_JOBID", of: ofBatch, provider: "azurebatch", nothing: "the job of a node has a name of its own"},
	{name: "AZURE_RESOURCE_GROUP", of: ofBatch, provider: "azurebatch", nothing: "the account is found by its name and its region"},

	{name: "OS_AUTH_URL", of: ofZun, provider: "zun", field: "identity.authURL"},
	{name: "OS_USERNAME", of: ofZun, provider: "zun", field: "identity.username"},
	{name: "OS_PASSWORD", of: ofZun, provider: "zun", field: "identity.password"},
	{name: "OS_DOMAIN_ID", of: ofZun, provider: "zun", field: "identity.userDomainID"},
	{name: "OS_DOMAIN_NAME", of: ofZun, provider: "zun", field: "identity.userDomainName"},
	{name: "OS_PROJECT_ID", of: ofZun, provider: "zun", field: "identity.projectID"},
	{name: "OS_PROJECT_NAME", of: ofZun, provider: "zun", field: "identity.projectName"},
	{name: "OS_TENANT_ID", of: ofZun, provider: "zun", field: "identity.projectID"},
	{name: "OS_TENANT_NAME", of: ofZun, provider: "zun", field: "identity.projectName"},
	{name: "OS_APPLICATION_CREDENTIAL_ID", of: ofZun, provider: "zun", field: "identity.applicationCredentialID"},
	{name: "OS_APPLICATION_CREDENTIAL_SECRET", of: ofZun, provider: "zun", field: "identity.applicationCredentialSecret"},
	{name: "OS_REGION_NAME", of: ofZun, provider: "zun", field: "region"},
	{name: "OS_USERID", of: ofZun, provider: "zun", nothing: "use OS_USERNAME with its domain"},
	{name: "OS_APPLICATION_CREDENTIAL_NAME", of: ofZun, provider: "zun", nothing: "use OS_APPLICATION_CREDENTIAL_ID"},
	{name: "OS_PASSCODE", of: ofZun, provider: "zun", nothing: "a node logs in again by itself, which one passcode does not do: use an application credential"},

	{name: "--client-kubeconfig", of: ofTensil, provider: "tensilekube", now: "VKUBELET_TENSILEKUBE_KUBECONFIG"},
	{name: "--client-qps", of: ofTensil, provider: "tensilekube", now: "VKUBELET_TENSILEKUBE_QPS"},
	{name: "--client-burst", of: ofTensil, provider: "tensilekube", now: "VKUBELET_TENSILEKUBE_BURST"},
	{name: "--enable-controllers", of: ofTensil, provider: "tensilekube", nothing: "set storageClasses and globalServices in the file of --provider-config"},
	{name: "--enable-serviceaccount", of: ofTensil, provider: "tensilekube", boolean: true, same: "true", nothing: "pods have tokens of the upper cluster; a pod without one says automountServiceAccountToken: false"},
	{name: "--ignore-labels", of: ofTensil, provider: "tensilekube", nothing: "pods in the lower cluster have the labels of their pods here"},
	{name: "VKUBELET_NODE_LABEL", of: ofTensil, provider: "tensilekube", nothing: "use kubectl label node"},
	{name: "VKUBELET_EXTERNAL_POD_IP", of: ofTensil, provider: "tensilekube", nothing: "the node has the address of --node-ip"},
}

func (n oldName) isFlag() bool { return strings.HasPrefix(n.name, "--") }

// flag is the name without dashes.
func (n oldName) flag() string { return strings.TrimPrefix(n.name, "--") }

// title returns the name for messages.
func (n oldName) title() string {
	if n.isFlag() {
		return "flag " + n.name
	}
	return "environment variable " + n.name
}

// define declares an old flag on fs as a hidden flag.
func (n oldName) define(fs *pflag.FlagSet) {
	switch setting, isSetting := strings.CutPrefix(n.now, "--"); {
	case !n.isFlag():
		return
	case isSetting:
		f := fs.Lookup(setting)
		fs.AddFlag(&pflag.Flag{Name: n.flag(), Usage: f.Usage, Value: f.Value, DefValue: f.DefValue, NoOptDefVal: f.NoOptDefVal})
	case n.boolean:
		fs.Bool(n.flag(), false, "of "+n.of)
	default:
		fs.String(n.flag(), "", "of "+n.of)
	}
	fs.Lookup(n.flag()).Hidden = true
}

// oldNames returns the old names of a setting: flags, or variables.
func (s setting) oldNames(flags bool) (names []string) {
	for _, n := range oldNames {
		if n.now == "--"+s.flag && n.isFlag() == flags {
			names = append(names, n.flag())
		}
	}
	return names
}

// settleOld applies the effect of an old name if the name is used.
func (r *resolved) settleOld(n oldName, getenv func(string) string) error {
	value := ""
	switch {
	case n.isFlag() && r.flags.Changed(n.flag()):
		value = r.flags.Lookup(n.flag()).Value.String()
	case !n.isFlag():
		value = getenv(n.name)
	}
	if value == "" {
		return nil // an empty flag too, because templates may render it empty
	}
	switch {
	case n.gone != "":
		return fmt.Errorf("%s is gone: %s", n.title(), n.gone)
	case n.now != "":
		r.warnings = append(r.warnings, warning{n.provider, fmt.Sprintf("%s is deprecated: use %s", n.title(), n.now)})
		if n.isFlag() && !strings.HasPrefix(n.now, "--") {
			if err := os.Setenv(n.now, value); err != nil { // the provider parses its own settings and finds the variable there
				return fmt.Errorf("%s: %w", n.title(), err)
			}
		}
	case n.nothing != "" && value != n.same:
		r.warnings = append(r.warnings, warning{n.provider, fmt.Sprintf("%s has no effect: %s", n.title(), n.nothing)})
	}
	return nil
}

// warning reports a setting that has no effect or another name.
type warning struct {
	// provider is the provider of the setting; "" for any.
	provider string
	text     string
}

// warningsFor returns the warnings for users of a provider. It leaves out variables of other providers, which
// may be set for another program.
func (r *resolved) warningsFor(provider string) (texts []string) {
	for _, w := range r.warnings {
		if w.provider == "" || w.provider == provider {
			texts = append(texts, w.text)
		}
	}
	return texts
}

// joinBooleans joins a boolean flag and the word true after it: other virtual kubelet programs accept `--disable-taint true`, and this
// program would take true for a command.
func joinBooleans(fs *pflag.FlagSet, args []string) ([]string, error) {
	joined := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...), nil
		}
		f := fs.Lookup(strings.TrimPrefix(args[i], "--"))
		isBoolean := strings.HasPrefix(args[i], "--") && f != nil && f.Value.Type() == "bool"
		switch {
		case !isBoolean || i+1 == len(args) || !slices.Contains([]string{"true", "false"}, args[i+1]):
			joined = append(joined, args[i])
		case args[i+1] == "true":
			joined = append(joined, args[i]+"=true")
			i++
		default: // some programs took this for true
			return nil, fmt.Errorf("flag %s false: write %s=false", args[i], args[i])
		}
	}
	return joined, nil
}
