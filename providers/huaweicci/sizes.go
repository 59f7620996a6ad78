// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

// sizes20 lists the sizes of API 2.0:
// https://support.huaweicloud.com/intl/en-us/usermanual-cci2/cci_01_0058.html of 2025-11-21.
var sizes20 = []sizing.Row{
	sizing.At(250, sizing.One(512*sizing.Mi), sizing.One(1*sizing.Gi), sizing.One(2*sizing.Gi)),
	sizing.At(500, sizing.One(512*sizing.Mi), sizing.Range(1*sizing.Gi, 4*sizing.Gi, sizing.Gi)),
	sizing.At(1000, sizing.Range(1*sizing.Gi, 8*sizing.Gi, sizing.Gi)),
	sizing.At(2000, sizing.Range(2*sizing.Gi, 16*sizing.Gi, sizing.Gi)),
	sizing.At(4000, sizing.Range(4*sizing.Gi, 32*sizing.Gi, sizing.Gi)),
	sizing.At(8000, sizing.Range(8*sizing.Gi, 64*sizing.Gi, 4*sizing.Gi)),
	sizing.At(16000, sizing.Range(16*sizing.Gi, 128*sizing.Gi, 8*sizing.Gi)),
	sizing.At(32000, sizing.One(32*sizing.Gi), sizing.One(64*sizing.Gi), sizing.One(128*sizing.Gi), sizing.One(256*sizing.Gi)),
	sizing.At(48000, sizing.One(96*sizing.Gi), sizing.One(192*sizing.Gi), sizing.One(384*sizing.Gi)),
	sizing.At(64000, sizing.One(128*sizing.Gi), sizing.One(256*sizing.Gi), sizing.One(512*sizing.Gi)),
}

// sizes10 lists the sizes of API 1.0: multiples of 0.25 CPU up to 32 CPUs, and 48 and 64 CPUs, each with
// 2 to 8 GiB of memory per CPU, in whole GiB: https://support.huaweicloud.com/intl/en-us/api-cci/pro_ys.html.
var sizes10 = func() (rows []sizing.Row) {
	var cpus []int64
	for milli := int64(250); milli <= 32000; milli += 250 {
		cpus = append(cpus, milli)
	}
	for _, milli := range append(cpus, 48000, 64000) {
		least, most := (2*milli+999)/1000, min(8*milli/1000, 512)
		rows = append(rows, sizing.At(milli, sizing.Range(least*sizing.Gi, most*sizing.Gi, sizing.Gi)))
	}
	return rows
}()

// containerSize10 returns the smallest container size of API 1.0 with room for the request: whole quarters of a
// CPU, and at least 0.2 GiB: https://support.huaweicloud.com/intl/en-us/productdesc-cci/cci_03_0007.html of
// 2023-10-13 and https://support.huaweicloud.com/intl/en-us/api-cci/pro_ys.html of 2024-05-31.
func containerSize10(asked sizing.Size) sizing.Size {
	const quarter, least = 250, sizing.Gi / 5
	return sizing.Size{MilliCPU: max(1, (asked.MilliCPU+quarter-1)/quarter) * quarter, Memory: max(asked.Memory, least+1)}
}

// formatSize returns a size in the format of CCI's annotation, such as 2.00_4.0.
func formatSize(s sizing.Size) string {
	return fmt.Sprintf("%.2f_%.1f", float64(s.MilliCPU)/1000, float64(s.Memory)/float64(sizing.Gi))
}
