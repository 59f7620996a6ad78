// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rule is a rule of ECI about the values of a container group, or about one value beyond its type.
type rule struct {
	// source is the place of publication of the rule. date is the date of publication, or the date of reading if
	// the source has no date.
	source, date string
	code         string
	broken       func(f fields) string
}

// The sources of the rules: the page of the request, and the description of the API from which the vendor makes
// its tools.
const (
	rulesPage = "alibabacloud.com/help/en/eci/api-createcontainergroup, and the description of ECI 2018-08-08 that the SDKs are made from"
	rulesDate = "2026-06-22"
	modelPage = "the descriptions of the fields in the vendor's SDKs of ECI 2018-08-08"
	modelDate = "2026-11-28"
	filesPage = "alibabacloud.com/help/en/eci/user-guide/mount-a-configfile-volume"
	filesDate = "2024-12-11"
	// The page has more exceptions than the SDKs, which are older than the page.
	sysctlPage = "alibabacloud.com/help/en/eci/user-guide/configure-a-security-context-for-an-elastic-container-instance-or-a-container"
	sysctlDate = "2026-04-01"
	gpuPage    = "help.aliyun.com/en/eci/user-guide/create-an-instance-by-specifying-the-gpu-type"
	gpuDate    = "2026-11-28"
	diskPage   = "alibabacloud.com/help/en/eci/user-guide/mount-a-disk-volume"
	diskDate   = "2026-04-01"
	// invalid is the code of parameters without a code of their own.
	invalid = "InvalidParameter"
)

var (
	variableKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	groupName   = regexp.MustCompile(`^[a-z0-9][-a-z0-9]{0,126}[a-z0-9]$`)
	// fileMode matches a mode that begins with 0, as modes of all files except devices do.
	fileMode = regexp.MustCompile(`^0[0-7]{3}$`)

	// safeSysctls are the sysctls of SecurityContext. unsafeSysctl matches the sysctls of HostSecurityContext,
	// except for noUnsafeSysctls.
	safeSysctls     = []string{"net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"}
	unsafeSysctl    = regexp.MustCompile(`^(kernel\.shm.*|kernel\.msg.*|kernel\.sem|fs\.mqueue\..*|net\..*|vm\.min_free_kbytes)$`)
	noUnsafeSysctls = append([]string{"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"}, safeSysctls...)
)

// rules are the published rules. The first rule that a group breaks refuses it.
var rules = []rule{
	{rulesPage, rulesDate, "InvalidParameter.DuplicatedName", func(f fields) string {
		return findDuplicate(append(namesOf(f.list("Container")), namesOf(f.list("InitContainer"))...))
	}},
	{rulesPage, rulesDate, "InvalidParameter.DuplicatedVolumeName", func(f fields) string { return findDuplicate(namesOf(f.list("Volume"))) }},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return textIf(!groupName.MatchString(f.textOf("ContainerGroupName")), "ContainerGroupName: want 2 to 128 lowercase letters, digits and hyphens")
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return textIf(len(f.textOf("ClientToken")) > 64, "ClientToken: want at most 64 characters")
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return textIf(len(strings.Split(f.textOf("VSwitchId"), ",")) > 10, "VSwitchId: want at most 10")
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string { return textIf(len(f.list("Tag")) > 20, "Tag: want at most 20") }},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		for _, t := range f.list("Tag") {
			key, value := t.textOf("Key"), t.textOf("Value")
			if n := utf8.RuneCountInString(key); n == 0 || n > 64 || strings.HasPrefix(key, "aliyun") || strings.HasPrefix(key, "acs:") || strings.Contains(key, "://") {
				return "Tag.Key: " + key
			}
			if utf8.RuneCountInString(value) > 128 || strings.HasPrefix(value, "acs:") || strings.Contains(value, "://") {
				return "Tag.Value: " + value
			}
		}
		return ""
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return textIf(len(f.list("ImageRegistryCredential")) > 10, "ImageRegistryCredential: want at most 10")
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return textIf(f.textOf("SpotStrategy") == "SpotWithPriceLimit" && !f.hasField("SpotPriceLimit"), "SpotPriceLimit: is required with SpotWithPriceLimit")
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		_, decimals, _ := strings.Cut(f.textOf("SpotPriceLimit"), ".")
		return textIf(len(decimals) > 3, "SpotPriceLimit: want at most 3 decimals")
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return textIf(f.hasField("EipBandwidth") && !f.isTrue("AutoCreateEip"), "EipBandwidth: only with AutoCreateEip")
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return firstProblem(f, func(c fields) string {
			for _, v := range c.list("EnvironmentVar") {
				if !variableKey.MatchString(v.textOf("Key")) {
					return "EnvironmentVar.Key: " + v.textOf("Key")
				}
			}
			return ""
		})
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return firstProblem(f, func(c fields) string {
			for _, v := range c.list("EnvironmentVar") {
				if n := utf8.RuneCountInString(v.textOf("Value")); n > 256 {
					return fmt.Sprintf("EnvironmentVar.Value: %s has %d characters, and may have 256", v.textOf("Key"), n)
				}
			}
			return ""
		})
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return firstProblem(f, func(c fields) string {
			for _, v := range c.list("EnvironmentVar") {
				if path := v.textOf("FieldRef.FieldPath"); path != "" && path != "status.podIP" {
					return "EnvironmentVar.FieldRef.FieldPath: " + path
				}
			}
			return ""
		})
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return firstProblem(f, func(c fields) string {
			return textIf(len(c.list("EnvironmentVar")) > 240, "EnvironmentVar: want at most 240")
		})
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return firstProblem(f, func(c fields) string {
			return textIf(len(c.textsOf("Command")) > 100, "Command: want at most 100")
		})
	}},
	{modelPage, modelDate, invalid, func(f fields) string {
		return firstProblem(f, func(c fields) string { return textIf(len(c.textsOf("Arg")) > 10, "Arg: want at most 10") })
	}},
	{modelPage, modelDate, invalid, func(f fields) string {
		return firstProblem(f, func(c fields) string {
			return textIf(c.hasField("TerminationMessagePolicy"), "TerminationMessagePolicy: want a queue of Message Service (MNS), and the emulator has none")
		})
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return firstProblem(f, func(c fields) string {
			all := c.partOf("SecurityContext").textsOf("Capability.Add")
			return textIf(slices.ContainsFunc(all, func(name string) bool { return name != "NET_ADMIN" && name != "NET_RAW" }), "SecurityContext.Capability.Add: want NET_ADMIN or NET_RAW")
		})
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		return firstProblem(f, func(c fields) string {
			for _, name := range []string{"LivenessProbe", "ReadinessProbe"} {
				if n := c.partOf(name).textOf("SuccessThreshold"); n != "" && n != "1" {
					return name + ".SuccessThreshold: must be 1"
				}
			}
			return ""
		})
	}},
	{rulesPage, rulesDate, invalid, func(f fields) string {
		for _, v := range f.list("Volume") {
			for _, file := range v.partOf("ConfigFileVolume").list("ConfigFileToPath") {
				if sizeOf(file) > 32<<10 {
					return "ConfigFileToPath.Content: " + file.textOf("Path") + " is larger than 32 KB"
				}
			}
		}
		return ""
	}},
	{filesPage, filesDate, invalid, func(f fields) string {
		all := 0
		for _, v := range f.list("Volume") {
			for _, file := range v.partOf("ConfigFileVolume").list("ConfigFileToPath") {
				all += sizeOf(file)
			}
		}
		return textIf(all > 60<<10, "ConfigFileVolume: all files are larger than 60 KB")
	}},
	{filesPage, filesDate, invalid, func(f fields) string {
		for _, v := range f.list("Volume") {
			files := v.partOf("ConfigFileVolume")
			modes := []string{files.textOf("DefaultMode")}
			for _, file := range files.list("ConfigFileToPath") {
				modes = append(modes, file.textOf("Mode"))
			}
			for _, mode := range modes {
				if mode != "" && !fileMode.MatchString(mode) {
					return "ConfigFileVolume: mode " + mode + ": want four octal digits, such as 0644"
				}
			}
		}
		return ""
	}},
	{diskPage, diskDate, invalid, func(f fields) string {
		return textIf(len(diskIDs(f)) > 6, "Volume: want at most 6 disks")
	}},
	{diskPage, diskDate, invalid, func(f fields) string {
		for _, v := range f.list("Volume") {
			flex := v.partOf("FlexVolume")
			switch kind := flex.textOf("FsType"); {
			case v.textOf("Type") != "FlexVolume":
			case !slices.Contains([]string{"alicloud/disk", "alicloud/nas", "alicloud/oss"}, flex.textOf("Driver")):
				return "FlexVolume.Driver: " + flex.textOf("Driver")
			case kind != "" && !slices.Contains([]string{"ext4", "ext3", "xfs", "vfat"}, kind):
				return "FlexVolume.FsType: " + kind
			case !json.Valid([]byte(flex.textOf("Options"))):
				return "FlexVolume.Options: want JSON"
			}
		}
		return ""
	}},
	{sysctlPage, sysctlDate, invalid, func(f fields) string {
		for _, s := range f.partOf("SecurityContext").list("Sysctl") {
			if !slices.Contains(safeSysctls, s.textOf("Name")) {
				return "SecurityContext.Sysctl.Name: " + s.textOf("Name")
			}
		}
		return ""
	}},
	{sysctlPage, sysctlDate, invalid, func(f fields) string {
		for _, s := range f.partOf("HostSecurityContext").list("Sysctl") {
			if name := s.textOf("Name"); slices.Contains(noUnsafeSysctls, name) || !unsafeSysctl.MatchString(name) {
				return "HostSecurityContext.Sysctl.Name: " + name
			}
		}
		return ""
	}},
	{gpuPage, gpuDate, invalid, func(f fields) string {
		return firstProblem(f, func(c fields) string {
			return textIf(c.numberOf("Gpu") > 0 && !strings.HasPrefix(f.textOf("InstanceType"), "ecs."), "Gpu: want an InstanceType with GPUs")
		})
	}},
	{rulesPage, rulesDate, "InvalidParameter.CPU.Memory", func(f fields) string {
		cpu, memory := 0.0, 0.0
		for _, c := range f.list("Container") {
			cpu, memory = cpu+c.numberOf("Cpu"), memory+c.numberOf("Memory")
		}
		return textIf(f.hasField("Cpu") && (cpu > f.numberOf("Cpu")+1e-6 || memory > f.numberOf("Memory")+1e-6), "The specified cpu and memory are not allowed")
	}},
}

// diskIDs returns the IDs of the disks of a group; "" stands for a disk that is made with the group.
func diskIDs(f fields) (ids []string) {
	for _, v := range f.list("Volume") {
		flex := v.partOf("FlexVolume")
		if flex.textOf("Driver") != "alicloud/disk" {
			continue
		}
		var options struct {
			VolumeID string `json:"volumeId"`
		}
		_ = json.Unmarshal([]byte(flex.textOf("Options")), &options) // a rule checks its form
		ids = append(ids, options.VolumeID)
	}
	return ids
}

// brokenRule returns the answer to a group that breaks a rule, or nil.
func brokenRule(f fields) error {
	for _, r := range rules {
		if problem := r.broken(f); problem != "" {
			return newFailure(http.StatusBadRequest, r.code, "%s", problem)
		}
	}
	return nil
}

// sizeOf returns how many bytes a file has.
func sizeOf(file fields) int {
	data, _ := base64.StdEncoding.DecodeString(file.textOf("Content")) // podOf refuses invalid base64
	return len(data)
}

func textIf(is bool, text string) string {
	if !is {
		return ""
	}
	return text
}

// firstProblem returns the first problem that check finds in a container.
func firstProblem(f fields, check func(c fields) string) string {
	for _, list := range []string{"InitContainer", "Container"} {
		for i, c := range f.list(list) {
			if problem := check(c); problem != "" {
				return list + "." + strconv.Itoa(i+1) + "." + problem
			}
		}
	}
	return ""
}

func namesOf(of []fields) (out []string) {
	for _, f := range of {
		out = append(out, f.textOf("Name"))
	}
	return out
}

// findDuplicate returns a problem if two names are the same.
func findDuplicate(names []string) string {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return "duplicate name " + name
		}
		seen[name] = true
	}
	return ""
}
