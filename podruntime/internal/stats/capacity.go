// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultPods is the maximum number of pods, as in a kubelet.
const DefaultPods = 110

func (m machine) nodeCapacity(root string, pods int64) corev1.ResourceList {
	if pods <= 0 {
		pods = DefaultPods
	}
	cpus := m.onlineProcessors()
	if cpus == 0 {
		cpus = int64(runtime.NumCPU())
	}
	list := corev1.ResourceList{
		corev1.ResourceCPU:  *resource.NewQuantity(cpus, resource.DecimalSI),
		corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
	}
	if info := m.memoryInfo(); info != nil {
		list[corev1.ResourceMemory] = bytesOf(info["MemTotal"])
	}
	if fs, err := statFileSystem(root); err == nil {
		list[corev1.ResourceEphemeralStorage] = bytesOf(fs.size)
	}
	for size, pages := range m.hugePages() {
		list[corev1.ResourceName(corev1.ResourceHugePagesPrefix+size)] = pages
	}
	return list
}

func bytesOf(n uint64) resource.Quantity {
	return *resource.NewQuantity(int64(min(n, math.MaxInt64)), resource.BinarySI)
}

// hugePages returns the memory in huge pages by their size, including sizes without huge pages.
func (m machine) hugePages() map[string]resource.Quantity {
	const prefix, suffix = "hugepages-", "kB"
	directory := filepath.Join(m.root, "sys", "kernel", "mm", "hugepages")
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil
	}
	sizes := map[string]resource.Quantity{}
	for _, entry := range entries {
		kilobytes := parseNumber(strings.TrimSuffix(strings.TrimPrefix(entry.Name(), prefix), suffix))
		if kilobytes == 0 {
			continue
		}
		pages := parseNumber(m.readText("sys", "kernel", "mm", "hugepages", entry.Name(), "nr_hugepages"))
		size := bytesOf(kilobytes * 1024)
		sizes[size.String()] = bytesOf(kilobytes * 1024 * pages)
	}
	return sizes
}

// readText returns the content of a file with one line, or "" if there is no file.
func (m machine) readText(path ...string) string {
	data, err := os.ReadFile(filepath.Join(append([]string{m.root}, path...)...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (m machine) systemInfo() corev1.NodeSystemInfo {
	info := corev1.NodeSystemInfo{
		Architecture: runtime.GOARCH, OperatingSystem: runtime.GOOS,
		MachineID: m.readText("etc", "machine-id"), SystemUUID: m.readText("sys", "class", "dmi", "id", "product_uuid"), OSImage: m.osImage(),
	}
	for to, path := range map[*string][]string{&info.BootID: {"sys", "kernel", "random", "boot_id"}, &info.KernelVersion: {"sys", "kernel", "osrelease"}} {
		if lines := m.readFields(path...); len(lines) > 0 {
			*to = lines[0][0]
		}
	}
	if info.SystemUUID == "" {
		info.SystemUUID = info.MachineID // the firmware has no UUID, or this process may not read it
	}
	return info
}

// osImage returns the name of the operating system.
func (m machine) osImage() string {
	for _, path := range [][]string{{"etc", "os-release"}, {"usr", "lib", "os-release"}} {
		for line := range strings.Lines(m.readText(path...)) {
			if name, found := strings.CutPrefix(line, "PRETTY_NAME="); found {
				return strings.Trim(strings.TrimSpace(name), `"'`)
			}
		}
	}
	return runtime.GOOS
}
