// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// component is a module in a binary.
type component struct {
	path, version string
	// sum is the checksum in go.sum; "" for code of this repository and for the standard library.
	sum string
	// licence is an SPDX expression.
	licence string
}

// url names the component as other tools do.
func (c component) url() string { return "pkg:golang/" + c.path + "@" + c.version }

// describe writes the contents of a binary, from Go's build information in it.
func (r *release) describe(b built) error {
	info, err := buildinfo.ReadFile(b.path)
	if err != nil {
		return err
	}
	components := r.components(info)
	for i, c := range components {
		if components[i].licence, err = r.licences.of(c); err != nil {
			return err
		}
	}
	base := strings.TrimSuffix(b.path, ".exe")
	if err := writeJSON(base+".spdx.json", r.spdx(b, components)); err != nil {
		return err
	}
	return writeJSON(base+".cdx.json", r.cycloneDX(b, components))
}

// components returns the modules of a binary and the standard library, sorted by path.
func (r *release) components(info *buildinfo.BuildInfo) []component {
	list := []component{{path: "stdlib", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		list = append(list, r.component(m))
	}
	slices.SortFunc(list, func(a, b component) int { return strings.Compare(a.path, b.path) })
	return list
}

// component returns the component of a module. A module replaced by a folder of this repository has the version
// of the release.
func (r *release) component(m *debug.Module) component {
	switch {
	case m.Replace == nil:
		return component{path: m.Path, version: m.Version, sum: m.Sum}
	case strings.HasPrefix(m.Replace.Path, "."):
		return component{path: m.Path, version: r.version}
	}
	return component{path: m.Replace.Path, version: m.Replace.Version, sum: m.Replace.Sum}
}

type object = map[string]any

const (
	homepage = "https://github.com/virtual-kubelet/virtual-kubelet"
	licence  = "Apache-2.0"
)

// spdx is the document of SPDX 2.3.
func (r *release) spdx(b built, components []component) object {
	name := filepath.Base(b.path)
	packages := []object{{
		"SPDXID": "SPDXRef-binary", "name": name, "versionInfo": r.version, "packageFileName": name, "primaryPackagePurpose": "APPLICATION",
		"downloadLocation": homepage, "filesAnalyzed": false, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION",
		"checksums": []object{{"algorithm": "SHA256", "checksumValue": b.digest}},
	}}
	relations := []object{{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-binary"}}
	for i, c := range components {
		id := fmt.Sprintf("SPDXRef-module-%d", i)
		p := object{
			"SPDXID": id, "name": c.path, "versionInfo": c.version, "primaryPackagePurpose": "LIBRARY",
			"downloadLocation": "NOASSERTION", "filesAnalyzed": false, "licenseConcluded": c.licence, "licenseDeclared": c.licence, "copyrightText": "NOASSERTION",
			"externalRefs": []object{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": c.url()}},
		}
		if c.sum != "" {
			p["comment"] = "go.sum: " + c.sum
		}
		packages = append(packages, p)
		relations = append(relations, object{"spdxElementId": "SPDXRef-binary", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": id})
	}
	return object{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
		"documentNamespace": homepage + "/spdx/" + name + "-" + b.digest,
		"creationInfo":      object{"created": r.created.Format(time.RFC3339), "creators": []string{"Tool: virtual-kubelet-release"}},
		"packages":          packages, "relationships": relations,
	}
}

// cycloneDX returns the document in the format CycloneDX 1.6.
func (r *release) cycloneDX(b built, components []component) object {
	name := filepath.Base(b.path)
	list, urls := make([]object, 0, len(components)), make([]string, 0, len(components))
	for _, c := range components {
		o := object{"type": "library", "bom-ref": c.url(), "name": c.path, "version": c.version, "purl": c.url()}
		if c.licence != noAssertion {
			o["licenses"] = []object{{"expression": c.licence}}
		}
		if c.sum != "" {
			o["properties"] = []object{{"name": "go.sum", "value": c.sum}}
		}
		list, urls = append(list, o), append(urls, c.url())
	}
	d := b.digest
	return object{
		"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		// A UUID of the binary's contents (RFC 9562, version 8).
		"serialNumber": fmt.Sprintf("urn:uuid:%s-%s-8%s-8%s-%s", d[:8], d[8:12], d[13:16], d[17:20], d[20:32]),
		"metadata": object{
			"timestamp": r.created.Format(time.RFC3339),
			"component": object{
				"type": "application", "bom-ref": "binary", "name": name, "version": r.version,
				"hashes":   []object{{"alg": "SHA-256", "content": b.digest}},
				"licenses": []object{{"license": object{"id": licence}}},
			},
		},
		"components":   list,
		"dependencies": []object{{"ref": "binary", "dependsOn": urls}},
	}
}

func writeJSON(path string, document any) error {
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
