// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	_ "embed" // the description of the fields
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

//go:embed fields.json
var fieldsFile []byte

// documented maps each type of API 2.0 to its documented fields, and each field to its type, or to "" for a type
// without fields.
var documented = func() map[string]map[string]string {
	var file struct {
		Types map[string]map[string]string `json:"types"`
	}
	if err := json.Unmarshal(fieldsFile, &file); err != nil || len(file.Types) == 0 {
		panic(fmt.Sprintf("fields.json: %v", err)) // the file is a part of the program
	}
	return file.Types
}()

// alsoIn10 are the additional fields of API 1.0, which is the Kubernetes API.
var alsoIn10 = map[string][]string{
	"PodSpec":   {"serviceAccountName", "automountServiceAccountToken", "enableServiceLinks", "subdomain"},
	"Container": {"imagePullPolicy"},
}

// undocumentedField returns the path of the first field of a pod spec that CCI would silently drop, or "" if
// there is none.
func undocumentedField(api string, spec *corev1.PodSpec) (string, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	var fields any
	if err := json.Unmarshal(data, &fields); err != nil {
		return "", err
	}
	return strangeField(api, "PodSpec", "spec", fields), nil
}

func strangeField(api, kind, path string, value any) string {
	switch value := value.(type) {
	case []any:
		for i, v := range value {
			if p := strangeField(api, kind, fmt.Sprintf("%s[%d]", path, i), v); p != "" {
				return p
			}
		}
	case map[string]any:
		if kind == "" {
			return ""
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			of, known := documented[kind][name]
			if !known && (api != API10 || !slices.Contains(alsoIn10[kind], name)) {
				return path + "." + name
			}
			if p := strangeField(api, of, path+"."+name, value[name]); p != "" {
				return p
			}
		}
	}
	return ""
}

// onlyDocumented returns an error for a pod with an undocumented field.
func onlyDocumented(api string, remote *corev1.Pod) error {
	path, err := undocumentedField(api, &remote.Spec)
	if err == nil && path != "" {
		err = errdefs.InvalidInputf("%s: API %s of CCI has no such field, and would leave it out in silence", path, api)
	}
	return err
}
