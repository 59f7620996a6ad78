// SPDX-License-Identifier: Apache-2.0

package fieldrow

// interlink has the plugins, pods and files of interLink.
var interlink = []Row{
	{
		ID: "A1", Source: "interlink-hq/interlink-slurm-plugin f8451d9: pkg/slurm/Status.go",
		Expects: "a pod without a job, which the plugin answers with containers that have no state, is submitted; answers that the plugin gives again for ten seconds lose and double no pod",
		Ours:    "an entry without a state and a job ID is no pod; with such a plugin a process that starts waits ten seconds before it submits or gives up a pod that is older",
		Since:   "2026-11-28",
	},
	{
		ID: "A2", Source: "interlink-hq/interlink-plugin-sdk 2c8a063: interlink/provider.py; interLink: docs/guides/02-develop-a-plugin.md",
		Expects: "all pods are submitted, run and are gone, though the plugin answers for the first pod of a request only and with 404 for an unknown pod",
		Ours:    "a pod that an answer lacks is asked for alone; a plugin that answers in part three times is asked for each pod alone",
		Since:   "2026-11-28",
	},
	{
		ID: "A3", Source: "interlink-hq/interlink-htcondor-plugin 6f5ee3e: handles.py",
		Expects: "as A2",
		Ours:    "as A2; a 404 of the plugin about one pod says that it does not have this pod, and the 404 of a proxy or of a path does not",
		Since:   "2026-11-28",
	},
	{
		ID: "A4", Source: "interlink-hq/interlink-kubernetes-plugin cfebf48",
		Expects: "an unknown pod, which the plugin leaves out, is submitted, and a pod that the plugin lost is seen",
		Ours:    "an answer without a pod counts when the pod was asked for alone; a pod is lost after three of them over thirty seconds",
		Since:   "2026-11-28",
	},
	{
		ID: "A5", Source: "interlink-hq/interlink-slurm-plugin f8451d9: pkg/slurm/Status.go",
		Expects: "one job whose files are gone, for which the plugin answers 500, does not hide the others",
		Ours:    "after an error of the plugin each pod is asked for alone, and a pod without an answer stays as it was",
		Since:   "2026-11-28",
	},
	{
		ID: "A6", Source: "interlink-hq/interLink f632175: pkg/interlink/api/handler.go",
		Expects: "the words of a plugin are readable though the API server escapes them as HTML",
		Ours:    "they are in the event and the status as the plugin said them",
		Since:   "2026-11-28",
	},
	{
		ID: "A7", Source: "interlink-hq/interlink-slurm-plugin f8451d9: pkg/slurm/Status.go; interlink-htcondor-plugin 6f5ee3e: handles.py",
		Expects: "a container is ready when the plugin says so",
		Ours:    "ready counts without started, too; with a plugin whose answers never have ready, as those of the Python SDK, a container that runs is ready",
		Since:   "2026-11-28",
	},
	{
		ID: "A8", Source: "interlink-hq/interlink-helm-chart 45fb2fa: interlink/templates/virtual-kubelet-config.yaml",
		Expects: "the chart's file starts as it is: VKTokenFile is /dev/null by default",
		Ours:    "the null device is no token; what has no meaning is named in a warning; the error about a token file names VKTokenFile",
		Since:   "2026-11-28",
	},
	{
		ID: "A9", Source: "interlink-hq/interlink-slurm-plugin: README.md; vk-test-set: templates",
		Expects: "pods of the quick start, with images such as docker://busybox and annotations slurm-job.vk.io/*, run",
		Ours:    "our plugin gives its provider the image without docker://, and the annotations as they are",
		Since:   "2026-11-28",
	},
	{
		ID: "A10", Source: "interlink-hq/interLink f632175 with interlink-slurm-plugin f8451d9 and interlink-plugin-sdk 2c8a063, run",
		Expects: "tests that stand in for these programs answer as the programs do",
		Ours:    "the answers of the programs are kept as facts, which the double is compared with; `make interlink-field` compares them with the programs",
		Since:   "2026-11-28",
	},
	{
		ID: "A20", Source: "interlink-hq/vk-test-set: vktestset/templates/100-failing-containers.yaml", Since: "2026-11-28",
		Expects: "A container whose command does not exist fails its pod.",
		Ours:    "On slurm the container ends with StartError and exit code 128, and the job ends. The contract of providers asks every provider for it.",
	},
	{
		ID: "A21", Source: "interlink-hq/interLink: the quick start; interlink-hq/interlink-slurm-plugin: README.md (image-root)", Since: "2026-11-28",
		Expects: "A pod with the image docker://ubuntu runs; the annotation slurm-job.vk.io/image-root begins the names of images.",
		Ours:    "On slurm the prefix docker:// is dropped, and image-root is obeyed. Where images are used, oras://, library:// and paths fail the pod at once with the path of the field.",
	},
	{
		ID: "A22", Source: "interlink-hq/interlink-slurm-plugin: README.md, examples, pkg/slurm/prepare_test.go; interlink-hq/vk-test-set: README.md", Since: "2026-11-28",
		Expects: "Flags of the annotation slurm-job.vk.io/flags reach sbatch, in short and in long form.",
		Ours:    "On slurm -t 30 is --time=30. Pods may set --time and the flags that the operator allows. The node's own flags win, and one event of the pod names what has no effect.",
	},
}
