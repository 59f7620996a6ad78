// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user of the program, and also the user of the pods in the chart.
const user = "65532:65532"

// searchPath is the default path of containers plus the folder of the program, so that manifests can name the
// program as a command.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/"

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// entry is a file or, with a slash at the end, a folder.
type entry struct {
	name string
	mode int64
	data []byte
}

// layout is an image being written.
type layout struct {
	created time.Time
	blobs   []entry
}

// descriptor points at a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *imagePlatform    `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type imagePlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// writeImage writes the image of the binaries, one for each architecture, as an OCI layout in a tar file.
func (r *release) writeImage(binaries []built) error {
	l := &layout{created: r.created}
	manifests := make([]descriptor, 0, len(binaries))
	for _, b := range binaries {
		binary, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		d, err := l.image(r.version, b.arch, contents(binary))
		if err != nil {
			return err
		}
		manifests = append(manifests, d)
	}
	all, err := l.json(indexType, object{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests})
	if err != nil {
		return err
	}
	return l.write(r.file(program, "_oci.tar"), all, r.version)
}

// contents returns the files of the image; deploy/image/Dockerfile has the same files.
func contents(binary []byte) []entry {
	return []entry{
		{"etc/", 0o755, nil},
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, authorities()},
		{program, 0o755, binary},
	}
}

// authorities returns the authorities with which a provider checks its backend's certificate.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // leaves out authorities with limits that a certificate cannot express
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// image adds the image of one architecture.
func (l *layout) image(version, arch string, files []entry) (descriptor, error) {
	var plain bytes.Buffer
	if err := l.tar(&plain, files); err != nil {
		return descriptor{}, err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return descriptor{}, err
	}
	if _, err := z.Write(plain.Bytes()); err != nil {
		return descriptor{}, err
	}
	if err := z.Close(); err != nil {
		return descriptor{}, err
	}
	config, err := l.json(configType, object{
		"created": l.created.Format(time.RFC3339), "architecture": arch, "os": "linux",
		"config": object{
			"User": user, "Env": []string{searchPath}, "Entrypoint": []string{"/" + program}, "WorkingDir": "/",
			"Labels": map[string]string{
				"org.opencontainers.image.source": homepage, "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": licence,
			},
		},
		"rootfs":  object{"type": "layers", "diff_ids": []string{"sha256:" + hexDigest(plain.Bytes())}},
		"history": []object{{"created": l.created.Format(time.RFC3339), "created_by": "virtual-kubelet-release"}},
	})
	if err != nil {
		return descriptor{}, err
	}
	manifest, err := l.json(manifestType, object{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{l.blob(layerType, packed.Bytes())},
	})
	manifest.Platform = &imagePlatform{Architecture: arch, OS: "linux"}
	return manifest, err
}

func (l *layout) json(mediaType string, document any) (descriptor, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return descriptor{}, fmt.Errorf("write %s: %w", mediaType, err)
	}
	return l.blob(mediaType, text), nil
}

func (l *layout) blob(mediaType string, data []byte) descriptor {
	digest := hexDigest(data)
	l.blobs = append(l.blobs, entry{path.Join("blobs/sha256", digest), 0o644, data})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(data)}
}

func hexDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// tar writes files in the given order, all owned by root and with the same time.
func (l *layout) tar(to io.Writer, files []entry) error {
	w := tar.NewWriter(to)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: l.created, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if f.name[len(f.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}
