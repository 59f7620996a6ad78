// SPDX-License-Identifier: Apache-2.0

package fieldrow

// rules is rules between values that no field description of a service has.
var rules = []Row{
	{"C1", "virtual-kubelet/azure-aci#17, #149, virtual-kubelet/virtual-kubelet#153, MicrosoftDocs/azure-docs#29780", "a pod whose limits are above its requests runs on ACI", "a limit of memory counts as asked for, and one of CPU is capped at what the group asks for: ACI takes no more", "2026-11-28"},
	{"C2", "docker/cli#3610", "a Secret with logins at more registries than the pod has containers does no harm", "ACI gets the logins that an image of the pod needs, with the name of the image's registry", "2026-11-28"},
	{"C3", "virtual-kubelet/azure-aci#573, Azure/azure-cli#11469", "a login at a registry whose name has a port works", "port 443 is left out; another port is refused with the path of the image: ACI logs in at none", "2026-11-28"},
	{"C4", "microsoft/rest-api-fuzz-testing#6", "two logins at one registry, by path, are both used", "refused with the path of the second image: ACI takes one login for a registry", "2026-11-28"},
	{"C5", "Azure/aci-deploy#29, #89", "a variable such as discovery.type is set", "refused with the path of the variable: ACI takes letters, digits and _", "2026-11-28"},
	{"C6", "virtual-kubelet/azure-aci#175", "a Secret with an empty value is mounted", "refused with the volume and the file: ACI takes no file that is empty; items leave it out", "2026-11-28"},
	{"C7", "docker-archive/cloud-integration-beta#5, hashicorp/terraform-provider-azurerm#11102, virtual-kubelet/azure-aci#353, MicrosoftDocs/azure-docs#101382", "two containers may declare one port", "a port is declared once in a group; more than five at a public address are refused by path", "2026-11-28"},
	{"C8", "derekbekoe/vscode-spot#38", "the label of a DNS name is taken, or the reason is said", "refused at the annotation unless it has 5 to 63 characters with a letter first", "2026-11-28"},
	{"C9", "MicrosoftDocs/SupportArticles-docs: error-codes-spot-container-creation.md", "a Spot pod runs, or the reason is said", "Spot with a subnet, a public address, a zone or another SKU is refused by the configuration, or at the annotation", "2026-11-28"},
	{"C10", "MicrosoftDocs/azure-compute-docs: container-instances-resource-and-quota-limits.md, Azure/azure-cli#26591", "a pod with many volumes runs, or the reason is said", "the 21st volume, and a mount path with a colon, are refused by path", "2026-11-28"},
	{"C11", "MicrosoftDocs/azure-docs#24776", "a pod that no group is large enough for fails", "refused by path, and not tried again as one that the region has no room for now", "2026-11-28"},
	{"C12", "virtual-kubelet/azure-aci#175, #566", "a pod that ACI refuses is not tried 17 times", "each bad request of a create ends the pod, but for those that the operator or a registry can mend", "2026-11-28"},
	{"C13", "virtual-kubelet/azure-aci: e2e/fixtures/csi-driver.yml", "an inline volume of file.csi.azure.com is a share of Azure Files", "it is one, with the account of its Secret; attributes that ACI has no place for are refused by path", "2026-11-28"},
	{"C14", "virtual-kubelet/azure-aci 1.6.4: pkg/provider/aci.go", "a pod with ports has a public address where no subnet is named", "the same for the file and the variables of azure-aci; a file of this provider says network.public", "2026-11-28"},
	{"C15", "27 rules of ACI, each with its source in providers/emulator/aci/rules.go", "a pod that passes the tests runs on ACI", "the emulator keeps each rule, and answers the code of ACI", "2026-11-28"},
	{"C16", "virtual-kubelet/virtual-kubelet#296, #297, Azure/aci-connector-k8s#43", "a pod with a variable without a value runs", "the variable is left out, as azure-aci does: ACI takes none", "2026-11-28"},
	{"C20", "aws/amazon-ecs-agent#1220", "two containers may declare one port", "a task declares a port once", "2026-11-28"},
	{"C21", "awsdocs/amazon-ecs-developer-guide#149", "a pod with large variables runs, or the reason is said", "a task definition above 64 KiB is refused at spec.containers", "2026-11-28"},
	{"C22", "virtual-kubelet/aws-fargate: fargate/pod.go", "iam.amazonaws.com/role is the role of the task", "it is, as an ARN or a name, if taskRoles has it; another one is refused at the annotation", "2026-11-28"},
	{"C23", "20 rules of ECS, each with its source in providers/emulator/ecs/rules.go", "a pod that passes the tests runs on Fargate", "the emulator keeps each rule, and answers the code of ECS", "2026-11-28"},
	{"C30", "alibabacloud.com/help/en/eci: api-createcontainergroup, 2026-06-22", "a variable such as discovery.type, or one with the address of the node, is set", "the first is refused by path; the address is status.podIP, the one source that ECI has", "2026-11-28"},
	{"C31", "alibabacloud.com/help/en/eci: api-createcontainergroup, 2026-06-22", "capabilities and thresholds of probes are kept, or the reason is said", "capabilities other than NET_ADMIN and NET_RAW, and a success threshold above 1, are refused by path", "2026-11-28"},
	{"C32", "alibabacloud.com/help/en/eci: api-createcontainergroup, 2026-06-22", "annotations of prices and addresses are kept, or the reason is said", "a price limit has three decimals and is there with its strategy; a bandwidth is with an address; names and lists that are too long are refused by path", "2026-11-28"},
	{"C33", "error codes of ECI: alibabacloud.com/help/en/eci: api-createcontainergroup, 2026-06-22", "a pod that ECI will never take is not tried for ever", "codes about the request end the pod; those about stock, quota and addresses let it wait", "2026-11-28"},
	{"C34", "26 rules of ECI, each with its source in providers/emulator/eci/rules.go", "a pod that passes the tests runs on ECI", "the emulator keeps each rule, and answers the code of ECI", "2026-11-28"},
	{"C40", "support.huaweicloud.com: productdesc-cci/cci_03_0007, api-cci/pro_ys", "a pod with two containers of 100m runs with API 1.0 of CCI", "each container gets whole quarters of a CPU and 0.2 GiB or more", "2026-11-28"},
	{"C41", "10 rules of CCI, each with its source in providers/huaweicci/podrules_test.go", "a pod that passes the tests runs on CCI", "the double keeps each rule", "2026-11-28"},
	{"C50", "hashicorp/nomad#306, #423, #2807, #2819, #3520, #3709, #9477, #9946, #10247", "a pod with port 53 of TCP and of UDP, or with a limit of 0 GPUs, runs on Nomad", "each of nine rules is kept by the job: a host port is reserved once, with two targets refused by path, and 0 devices are not asked for", "2026-11-28"},
	{"C60", "futureverse/future.batchtools#41, bessagroup/f3dasm#352, mehta-lab/recOrder#482, dask/dask-jobqueue#238, NVIDIA-NeMo/RL#3051, awslabs/awsome-distributed-ai#196, ResearchComputing/Documentation#562, aidenlab/juicer#143, PennLINC/babs#118, nservant/HiC-Pro#645", "a pod that passes the tests is a job that sbatch takes", "each of 13 rules between flags is kept by the command line, or the pod is refused at the annotation", "2026-11-28"},
	{"C70", "admiraltyio/admiralty#51, #54, #82, liqotech/liqo#800, rancher/k3k#340, loft-sh/vcluster#22, #1718, kubernetes/kubernetes#26457", "a pod with a name of 253 characters, a priority or a service account runs in a second cluster", "each of nine rules is kept by the pod over there: nothing in it is about classes, accounts or nodes of home", "2026-11-28"},
}
