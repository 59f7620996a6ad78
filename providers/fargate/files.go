// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

const (
	// filesName is the name of the container that writes the files of a pod before the others start.
	filesName = "vk-files"
	// filesDir is where it has the volumes of the pod.
	filesDir = "/vk-files"
	// maxPiece is how many bytes of an archive are in a secret, which is a variable of that container, and maxPieces how many there are: a
	// program is not started with more than 2 MiB of variables, and a definition has 64 KiB.
	maxPiece, maxPieces = 60 << 10, 16
)

// Kinds of archives: what many pods share, and what is of one pod alone. They begin the names of what is kept.
const (
	sharedFiles = "files/"
	ownFiles    = "own/"
)

// own reports whether the files of a volume are of one pod: its tokens, and what is said of it.
func own(v *corev1.Volume) bool {
	if v.Projected == nil {
		return v.DownwardAPI != nil
	}
	for _, s := range v.Projected.Sources {
		if s.ServiceAccountToken != nil || s.DownwardAPI != nil {
			return true
		}
	}
	return false
}

// hasOwn reports whether a pod has files of its own, and so a secret that ends with it.
func hasOwn(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if own(&pod.Spec.Volumes[i]) {
			return true
		}
	}
	return false
}

// archives packs the files of a pod: those that many pods share, and those of its own. Same files are the same bytes.
func (r resolved) archives() (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, kind := range []string{sharedFiles, ownFiles} {
		var packed bytes.Buffer
		zipped := gzip.NewWriter(&packed)
		to := tar.NewWriter(zipped)
		n := 0
		for i := range r.pod.Spec.Volumes {
			v := &r.pod.Spec.Volumes[i]
			if !podspec.Written(v) || own(v) != (kind == ownFiles) {
				continue
			}
			n++
			for _, f := range r.files[v.Name] {
				if err := pack(to, v.Name, f, field.NewPath("spec", "volumes").Index(i)); err != nil {
					return nil, err
				}
			}
		}
		if n == 0 {
			continue
		}
		if err := to.Close(); err != nil {
			return nil, err
		}
		if err := zipped.Close(); err != nil {
			return nil, err
		}
		most := map[string]int{sharedFiles: maxPiece * maxPieces, ownFiles: maxPiece}[kind]
		if n := base64.StdEncoding.EncodedLen(packed.Len()); n > most {
			return nil, errdefs.InvalidInputf("spec.volumes: %d bytes of files, packed: a pod on Fargate has %d at most, and %d in volumes with tokens and the downward API",
				n, maxPiece*maxPieces, maxPiece)
		}
		out[kind] = packed.Bytes()
	}
	return out, nil
}

// pack adds a file of a volume, with its mode and owner.
func pack(to *tar.Writer, volume string, f podspec.File, at *field.Path) error {
	name := path.Join(volume, f.Path)
	if !strings.HasPrefix(name, volume+"/") {
		return errdefs.InvalidInputf("%s: the file %q leads out of its volume", at, f.Path)
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(f.Data)), Mode: int64(f.Mode.Perm()), ModTime: time.Unix(0, 0), Format: tar.FormatGNU}
	if f.User != nil {
		h.Uid = int(*f.User)
	}
	if err := to.WriteHeader(h); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	_, err := to.Write(f.Data)
	return err
}

// pieces cuts an archive into texts that fit into secrets.
func pieces(archive []byte) (out []string) {
	for text := base64.StdEncoding.EncodeToString(archive); text != ""; {
		n := min(len(text), maxPiece)
		out, text = append(out, text[:n]), text[n:]
	}
	return out
}

// fileSecrets are the secrets of the files of a pod, by what they are kept as. Those of its own are named by the pod, and have what the
// last try to create it gave them.
func (m mapping) fileSecrets(key []byte, r resolved, out map[string]secret) error {
	archives, err := r.archives()
	if err != nil {
		return err
	}
	for kind, archive := range archives {
		for i, text := range pieces(archive) {
			s := secret{name: nameOf(key, m.owner.Cluster, text), cluster: m.owner.Cluster, text: text}
			if kind == ownFiles {
				s.name, s.own = m.ownName(string(r.pod.UID)), true
			}
			out[kind+strconv.Itoa(i)] = s
		}
	}
	return nil
}

// writer is the container that writes the files of a pod; false is none. Its image has sh, base64 and tar.
func (b *builder) writer() (types.ContainerDefinition, bool) {
	k := types.ContainerDefinition{Name: aws.String(filesName), Image: &b.config.FilesImage, Essential: aws.Bool(false), EntryPoint: []string{"sh", "-c"}}
	var script []string
	for _, kind := range []string{sharedFiles, ownFiles} {
		variable := "VK_" + strings.ToUpper(strings.TrimSuffix(kind, "/")) + "_"
		var read []string
		for i := 0; b.arns[kind+strconv.Itoa(i)] != ""; i++ {
			name := variable + strconv.Itoa(i)
			k.Secrets = append(k.Secrets, types.Secret{Name: &name, ValueFrom: aws.String(b.arns[kind+strconv.Itoa(i)])})
			read = append(read, `printf %s "$`+name+`"`)
		}
		if len(read) > 0 {
			script = append(script, "{ "+strings.Join(read, "; ")+"; } | base64 -d | tar xzpf - -C "+filesDir)
		}
	}
	if len(script) == 0 {
		return k, false
	}
	k.Command = []string{strings.Join(script, " && ")}
	for i := range b.pod.Spec.Volumes {
		if v := &b.pod.Spec.Volumes[i]; podspec.Written(v) {
			k.MountPoints = append(k.MountPoints, types.MountPoint{SourceVolume: aws.String(v.Name), ContainerPath: aws.String(filesDir + "/" + v.Name), ReadOnly: aws.Bool(false)})
		}
	}
	b.logs(&k)
	if arn := b.config.RegistryCredentials[registry(b.config.FilesImage)]; arn != "" {
		k.RepositoryCredentials = &types.RepositoryCredentials{CredentialsParameter: &arn}
	}
	b.wait = append(b.wait, types.ContainerDependency{ContainerName: k.Name, Condition: types.ContainerConditionSuccess})
	return k, true
}
