// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
)

// Rule is a rule of ACI about values of a container group that is not in the description of the fields.
type Rule struct {
	// Source is the place of publication of the rule, and Date is its date.
	Source, Date string
	// Status and Code are the answer of ACI. Code is BadRequest where the source does not quote the code.
	Status int
	Code   string
	// Broken returns the problem of a value that breaks the rule, or "".
	Broken func(g *Request) string
}

// Hard limits of ACI: MicrosoftDocs/azure-compute-docs: articles/container-instances/container-instances-resource-and-quota-limits.md, 2025-11-17.
const (
	maxContainers = 60
	maxVolumes    = 20
	maxPorts      = 5
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	registryHost = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$`)
	dnsNameLabel = regexp.MustCompile(`^[a-z][-a-z0-9]{3,61}[a-z0-9]$`)
)

// Rules returns the published rules. The first rule that a group breaks refuses it.
func Rules() []Rule {
	return []Rule{
		{"virtual-kubelet/azure-aci#149", "2021-07-07", http.StatusBadRequest, "ContainerLimitGreaterThanContainerGroupTotalRequest", limitAboveGroup},
		{"virtual-kubelet/virtual-kubelet#143", "2018-04-19", http.StatusBadRequest, "ResourceLimitsLessThanRequests", limitBelowRequest},
		{"virtual-kubelet/virtual-kubelet#50", "2017-12-30", http.StatusBadRequest, "ResourceSomeRequestsNotSpecified", requestMissing},
		{"CompositionalIT/farmer#1004", "2023-01-26", http.StatusBadRequest, "MemoryRequirementNotTimesOfOneTenthGB", memoryBetweenSteps},
		{"docker/cli#3610", "2022-05-16", http.StatusBadRequest, "MoreImageRegistryCredentialsThanContainers", moreLoginsThanContainers},
		{"virtual-kubelet/azure-aci#573, Azure/azure-cli#11469", "2023-09-18", http.StatusBadRequest, "InvalidImageRegistryServer", registryWithPort},
		{"microsoft/rest-api-fuzz-testing#6", "2020-10-22", http.StatusBadRequest, unquoted, registryTwice},
		{"virtual-kubelet/virtual-kubelet#411", "2018-11-15", http.StatusBadRequest, "InvalidRequestContent", loginWithoutUser},
		{identity, "2026-09-09", http.StatusBadRequest, "AmbiguousImageResitryCredentialType", loginOfTwo},
		{identity, "2026-09-09", http.StatusBadRequest, "InvalidImageRegistryIdentity", loginByStranger},
		{"Azure/aci-deploy#29", "2020-11-18", http.StatusBadRequest, "InvalidContainerEnvironmentVariable", variableWithDot},
		{"virtual-kubelet/virtual-kubelet#296, #297, mage-ai/mage-ai#4872", "2018-08-03", http.StatusBadRequest, "InvalidEnvironmentVariable", variableWithoutValue},
		{"virtual-kubelet/azure-aci#175", "2021-11-22", http.StatusBadRequest, "SecretValueNotSpecified", emptyFile},
		{"virtual-kubelet/azure-aci#303", "2022-09-27", http.StatusBadRequest, "DuplicateVolumes", volumeTwice},
		{"MicrosoftDocs/azure-compute-docs: container-instances-resource-and-quota-limits.md", "2025-11-17", http.StatusBadRequest, unquoted, tooManyVolumes},
		{"MicrosoftDocs/azure-compute-docs: container-instances-resource-and-quota-limits.md", "2025-11-17", http.StatusBadRequest, unquoted, tooManyContainers},
		{"Azure/azure-cli#26591", "2023-06-02", http.StatusBadRequest, unquoted, mountWithColon},
		{"hashicorp/terraform-provider-azurerm#1697", "2021-02-26", http.StatusBadRequest, "MissingIpAddressPorts", addressWithoutPorts},
		{"hashicorp/terraform-provider-azurerm#5091, Azure/azure-libraries-for-net#216", "2020-06-18", http.StatusBadRequest, "UnreferencedIpAddressPorts", portOfNoContainer},
		{"MicrosoftDocs/azure-docs#101382", "2022-11-14", http.StatusBadRequest, unquoted, tooManyPorts},
		{"docker-archive/cloud-integration-beta#5, hashicorp/terraform-provider-azurerm#11102", "2020-06-26", http.StatusBadRequest, unquoted, portTwice},
		{"portainer/portainer#4040", "2020-07-15", http.StatusBadRequest, "PrivateIPAddressNotSupported", privateWithoutSubnet},
		{"Azure/azure-cli#16785", "2021-02-03", http.StatusBadRequest, "InvalidIpAddressTypeForNetworkProfile", publicInSubnet},
		{"derekbekoe/vscode-spot#38", "2018-05-03", http.StatusBadRequest, unquoted, shortLabel},
		{"virtual-kubelet/virtual-kubelet#280", "2018-07-30", http.StatusBadRequest, unquoted, probeOfTwo},
		{"MicrosoftDocs/SupportArticles-docs: error-codes-spot-container-creation.md", "2025-04-14", http.StatusBadRequest, "SpotPriorityContainerGroupNotSupportedForInboundConnectivity", spotWithNetwork},
		{"MicrosoftDocs/SupportArticles-docs: error-codes-spot-container-creation.md", "2025-04-14", http.StatusBadRequest, "SpotPriorityContainerGroupNotSupportedInSku", spotOfOtherSKU},
		{"MicrosoftDocs/azure-compute-docs: container-instances-spot-containers-overview.md", "2025-11-17", http.StatusBadRequest, unquoted, spotInZone},
		{"Azure/azure-sdk-for-go: armcontainerinstance v2.4.0, models.go", "2023-11-24", http.StatusBadRequest, unquoted, extensionWithoutType},
		{"MicrosoftDocs/azure-docs#24776, azure-compute-docs: container-instances-resource-and-quota-limits.md", "2019-02-12", http.StatusConflict, "ServiceUnavailable", tooLarge},
	}
}

// isAbove reports whether a number is larger than another, by more than the rounding error of sums of fractions.
func isAbove(n, than float64) bool { return n > than+1e-6 }

// firstProblem returns the first problem that check finds in a container. If all is true, it includes init containers.
func (g *Request) firstProblem(all bool, check func(c *container) string) string {
	lists := [][]container{g.Properties.Containers}
	if all {
		lists = append(lists, g.Properties.InitContainers)
	}
	for _, list := range lists {
		for i := range list {
			if problem := check(&list[i]); problem != "" {
				return problem
			}
		}
	}
	return ""
}

func limitAboveGroup(g *Request) string {
	cpu, memory := g.sumRequests()
	return g.firstProblem(false, func(c *container) string {
		r := c.Properties.Resources
		switch {
		case r == nil || r.Limits == nil:
		case isAbove(r.Limits.CPU, cpu):
			return fmt.Sprintf("The 'Cpu' limit '%g' in container '%s' is greater than the total request '%g'.", r.Limits.CPU, c.Name, cpu)
		case isAbove(r.Limits.MemoryInGB, memory):
			return fmt.Sprintf("The 'MemoryInGB' limit '%g' in container '%s' is greater than the total request '%g'.", r.Limits.MemoryInGB, c.Name, memory)
		}
		return ""
	})
}

func limitBelowRequest(g *Request) string {
	return g.firstProblem(false, func(c *container) string {
		r := c.Properties.Resources
		if r != nil && r.Limits != nil &&
			(r.Limits.CPU != 0 && isAbove(r.Requests.CPU, r.Limits.CPU) || r.Limits.MemoryInGB != 0 && isAbove(r.Requests.MemoryInGB, r.Limits.MemoryInGB)) {
			return "The limit value of container '" + c.Name + "' must be greater than or equal to the request value."
		}
		return ""
	})
}

func requestMissing(g *Request) string {
	return g.firstProblem(false, func(c *container) string {
		if r := c.Properties.Resources; r != nil && (r.Requests.CPU <= 0 || r.Requests.MemoryInGB <= 0) {
			return "A request is not specified in container '" + c.Name + "'."
		}
		return ""
	})
}

func memoryBetweenSteps(g *Request) string {
	return g.firstProblem(false, func(c *container) string {
		if r := c.Properties.Resources; r != nil && math.Abs(r.Requests.MemoryInGB*10-math.Round(r.Requests.MemoryInGB*10)) > 1e-6 {
			return fmt.Sprintf("The memory requirement is '%g' in container '%s', and should be in increments of 0.1 GB.", r.Requests.MemoryInGB, c.Name)
		}
		return ""
	})
}

func moreLoginsThanContainers(g *Request) string {
	if len(g.Properties.ImageRegistryCredentials) > len(g.Properties.Containers) {
		return "More image registry credentials provided than containers."
	}
	return ""
}

func registryWithPort(g *Request) string {
	for _, c := range g.Properties.ImageRegistryCredentials {
		if !registryHost.MatchString(c.Server) {
			return "The server '" + c.Server + "' in the 'imageRegistryCredentials' is invalid. It should be a valid host name without protocol."
		}
	}
	return ""
}

func registryTwice(g *Request) string {
	return findDuplicate(g.Properties.ImageRegistryCredentials, func(c login) string { return c.Server })
}

func loginWithoutUser(g *Request) string {
	for _, c := range g.Properties.ImageRegistryCredentials {
		if c.Username == "" && c.Identity == "" {
			return "Required property 'username' not found in the credentials of '" + c.Server + "'."
		}
	}
	return ""
}

func loginOfTwo(g *Request) string {
	for _, c := range g.Properties.ImageRegistryCredentials {
		if c.Username != "" && c.Identity != "" {
			return "The credentials of '" + c.Server + "' must have one of 'username' and 'identity'."
		}
	}
	return ""
}

// loginByStranger returns a problem if a group pulls images with an identity that it does not have.
func loginByStranger(g *Request) string {
	for _, c := range g.Properties.ImageRegistryCredentials {
		if c.Identity == "" {
			continue
		}
		has := false
		if g.Identity != nil {
			for id := range g.Identity.UserAssignedIdentities {
				has = has || strings.EqualFold(id, c.Identity)
			}
		}
		if !has {
			return "The identity '" + c.Identity + "' for '" + c.Server + "' is not one of the container group."
		}
	}
	return ""
}

func variableWithDot(g *Request) string {
	return g.firstProblem(true, func(c *container) string {
		for _, e := range c.Properties.EnvironmentVariables {
			if !variableName.MatchString(e.Name) {
				return "The environment variable name in container '" + c.Name + "' is invalid: " + e.Name
			}
		}
		return ""
	})
}

// variableWithoutValue treats an empty value as a missing one: the refused clients omitted the value, and the accepted clients never send
// such a variable.
func variableWithoutValue(g *Request) string {
	has := func(value *string) bool { return value != nil && *value != "" }
	return g.firstProblem(true, func(c *container) string {
		for _, e := range c.Properties.EnvironmentVariables {
			if has(e.Value) == has(e.SecureValue) {
				return "The environment variable '" + e.Name + "' in container '" + c.Name + "' must have one of 'value' and 'secureValue'."
			}
		}
		return ""
	})
}

func emptyFile(g *Request) string {
	for _, v := range g.Properties.Volumes {
		for name, data := range v.Secret {
			if len(data) == 0 {
				return "The value of secret '" + name + "' is not specified in volume '" + v.Name + "'."
			}
		}
	}
	return ""
}

func volumeTwice(g *Request) string {
	return findDuplicate(g.Properties.Volumes, func(v volume) string { return v.Name })
}

func tooManyVolumes(g *Request) string {
	if n := len(g.Properties.Volumes); n > maxVolumes {
		return fmt.Sprintf("The group has %d volumes, and may have %d.", n, maxVolumes)
	}
	return ""
}

func tooManyContainers(g *Request) string {
	if n := len(g.Properties.Containers) + len(g.Properties.InitContainers); n > maxContainers {
		return fmt.Sprintf("The group has %d containers, and may have %d.", n, maxContainers)
	}
	return ""
}

func mountWithColon(g *Request) string {
	return g.firstProblem(true, func(c *container) string {
		for _, m := range c.Properties.VolumeMounts {
			if strings.Contains(m.MountPath, ":") {
				return "The volume mount path '" + m.MountPath + "' cannot contain ':'."
			}
		}
		return ""
	})
}

func addressWithoutPorts(g *Request) string {
	if a := g.Properties.IPAddress; a != nil && len(a.Ports) == 0 {
		return "The ports in the 'ipAddress' cannot be empty."
	}
	return ""
}

// allPorts returns the ports of all containers.
func (g *Request) allPorts() (all []port) {
	for i := range g.Properties.Containers {
		all = append(all, g.Properties.Containers[i].Properties.Ports...)
	}
	return all
}

func portOfNoContainer(g *Request) string {
	if g.Properties.IPAddress == nil {
		return ""
	}
	has := map[port]bool{}
	for _, p := range g.allPorts() {
		has[p] = true
	}
	for _, p := range g.Properties.IPAddress.Ports {
		if !has[p] {
			return fmt.Sprintf("Port '%d' in the 'ipAddress' is not used by any container.", p.Port)
		}
	}
	return ""
}

func tooManyPorts(g *Request) string {
	if a := g.Properties.IPAddress; a != nil && len(a.Ports) > maxPorts {
		return fmt.Sprintf("The 'ipAddress' has %d ports, and may have %d.", len(a.Ports), maxPorts)
	}
	return ""
}

func portTwice(g *Request) string {
	name := func(p port) string { return fmt.Sprint(p.Port, p.Protocol) }
	if problem := findDuplicate(g.allPorts(), name); problem != "" || g.Properties.IPAddress == nil {
		return problem
	}
	return findDuplicate(g.Properties.IPAddress.Ports, name)
}

func privateWithoutSubnet(g *Request) string {
	if a := g.Properties.IPAddress; a != nil && a.Type == "Private" && len(g.Properties.SubnetIDs) == 0 {
		return "Private IP address is only supported when network profile is defined."
	}
	return ""
}

func publicInSubnet(g *Request) string {
	if a := g.Properties.IPAddress; a != nil && a.Type == "Public" && len(g.Properties.SubnetIDs) > 0 {
		return "IP Address type can't be public when network profile is set."
	}
	return ""
}

func shortLabel(g *Request) string {
	if a := g.Properties.IPAddress; a != nil && a.DNSNameLabel != "" && !dnsNameLabel.MatchString(a.DNSNameLabel) {
		return "The DNS name label '" + a.DNSNameLabel + "' is invalid: want 5 to 63 lowercase letters, numbers and hyphens, a letter first."
	}
	return ""
}

func probeOfTwo(g *Request) string {
	return g.firstProblem(false, func(c *container) string {
		for _, p := range []*probe{c.Properties.LivenessProbe, c.Properties.ReadinessProbe} {
			if p != nil && (p.Exec == nil) == (p.HTTPGet == nil) {
				return "A probe of container '" + c.Name + "' must have one of 'exec' and 'httpGet'."
			}
		}
		return ""
	})
}

func (g *Request) isSpot() bool { return g.Properties.Priority == "Spot" }

func spotWithNetwork(g *Request) string {
	if g.isSpot() && (g.Properties.IPAddress != nil || len(g.Properties.SubnetIDs) > 0) {
		return "Spot Priority is not supported for container groups with inbound connectivity."
	}
	return ""
}

func spotOfOtherSKU(g *Request) string {
	if g.isSpot() && g.Properties.SKU != "" && g.Properties.SKU != "Standard" {
		return "Spot Priority Container Group is not supported in '" + g.Properties.SKU + "' Sku."
	}
	return ""
}

func spotInZone(g *Request) string {
	if g.isSpot() && len(g.Zones) > 0 {
		return "Spot container groups are pinned to no zone."
	}
	return ""
}

func extensionWithoutType(g *Request) string {
	for _, e := range g.Properties.Extensions {
		if e.Properties != nil && (e.Properties.ExtensionType == "" || e.Properties.Version == "") {
			return "Extension '" + e.Name + "' must have 'extensionType' and 'version'."
		}
	}
	return ""
}

func tooLarge(g *Request) string {
	maxCPU, maxMemory := 31.0, 240.0
	switch {
	case g.isSpot():
		maxCPU, maxMemory = 4, 16
	case g.Properties.SKU == "Confidential":
		maxMemory = 180
	}
	if cpu, memory := g.sumRequests(); isAbove(cpu, maxCPU) || isAbove(memory, maxMemory) {
		return fmt.Sprintf("The requested resource is not available in the location at this moment. Resource requested: '%g' CPU '%g' GB memory.", cpu, memory)
	}
	return ""
}

// findDuplicate returns the problem that two items of a list have the same name.
func findDuplicate[T any](list []T, name func(T) string) string {
	seen := map[string]bool{}
	for _, v := range list {
		if seen[name(v)] {
			return "Duplicate '" + name(v) + "' is found."
		}
		seen[name(v)] = true
	}
	return ""
}
