// SPDX-License-Identifier: Apache-2.0

package fieldrow

// migration has files and command lines of other providers.
var migration = []Row{
	{ID: "D1", Source: "virtual-kubelet/azure-aci: charts/virtual-kubelet/templates/deployment.yaml, values.yaml (1.6.4)",
		Expects: "the arguments start a node, `--disable-taint true` too",
		Ours:    "a node with the taint azure, or none; what has no effect is a warning with the setting in its place; --trace-exporter is an error that names --trace-endpoint", Since: "2026-11-28"},
	{ID: "D2", Source: "virtual-kubelet/azure-aci: deploy/deployment.yaml (1.6.4)",
		Expects: "the node has the taint that pods tolerate, virtual-kubelet.io/provider=azure", Ours: "the value of the taint is the name in --provider", Since: "2026-11-28"},
	{ID: "D3", Source: "virtual-kubelet/azure-aci: cmd/virtual-kubelet/main.go (1.6.4)",
		Expects: "every flag is known", Ours: "all are known; each that has no effect says why", Since: "2026-11-28"},
	{ID: "D4", Source: "virtual-kubelet/tensile-kube: README.md, manifeasts/virtual-node.yaml",
		Expects: "the command and the arguments start a node",
		Ours:    "they do, with a clusterName; a --metrics-addr that everybody reaches is an error that names /metrics of the kubelet API", Since: "2026-11-28"},
	{ID: "D5", Source: "virtual-kubelet/nomad: README.md", Expects: "the pod of the page is scheduled to the node of the page",
		Ours: "it is: VK_TAINT_KEY has no effect, as in the program of the page, and a warning names --taint-key", Since: "2026-11-28"},
	{ID: "D6", Source: "virtual-kubelet/alibabacloud-eci: README.md; virtual-kubelet/aws-fargate: README.md; virtual-kubelet/virtual-kubelet: providers/register (0.4)", Expects: "the names of the providers are known, and the commands start nodes with the taints alibabacloud and aws",
		Ours: "they do, with a certificate, which an error names", Since: "2026-11-28"},
	{ID: "D7", Source: "virtual-kubelet/tensile-kube: README.md, the annotation clusterSelector with tolerations", Expects: "the pod in the lower cluster has them",
		Ours: "it has them, beside those of the configuration, unless clusterSelector of the configuration leaves tolerations out", Since: "2026-11-28"},
	{ID: "D8", Source: "virtual-kubelet/aws-fargate: fargate.toml", Expects: "the file is read",
		Ours: "it is; clusterName and an execution role are required besides, and the error names the variables for them", Since: "2026-11-28"},
	{ID: "D9", Source: "virtual-kubelet/alibabacloud-eci: eci.toml, the five variables of README.md", Expects: "file and variables are enough",
		Ours: "they are; without the file, the error names the variables for cluster name and capacity", Since: "2026-11-28"},
	{ID: "D10", Source: "virtual-kubelet/nomad: README.md", Expects: "`NOMAD_ADDR=127.0.0.1:4646` is an address", Ours: "it is, by http, or by https where TLS is configured", Since: "2026-11-28"},
	{ID: "D11", Source: "virtual-kubelet/azure-aci: charts/virtual-kubelet, the environment that it makes; pkg/auth/auth_config.go", Expects: "credentials, cloud, network and workspace are those of the variables and files",
		Ours: "they are; ACI_CLUSTER_NAME is required besides, and the error names it", Since: "2026-11-28"},
	{ID: "D12", Source: "virtual-kubelet/nomad: README.md; Azure's guide for virtual nodes: nodeSelector kubernetes.io/role: agent", Expects: "the pods are scheduled to the node",
		Ours: "with a service account they are; the identity of a node may not set the label, and doctor and docs/migrating.md say the command that does", Since: "2026-11-28"},
	{ID: "D13", Source: "virtual-kubelet/azure-aci, alibabacloud-eci: their environment variables", Expects: "each has a meaning, or a word is said",
		Ours: "each that a provider takes, and each without effect, is a row of docs/configuration.md", Since: "2026-11-28"},
	{ID: "D14", Source: "virtual-kubelet/azure-aci: charts/virtual-kubelet/templates/deployment.yaml, deploy/deployment.yaml", Expects: "`command: [virtual-kubelet]` is found in the image",
		Ours: "it is: the path of the image has the folder of the program", Since: "2026-11-28"},
}
