// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// maxSecret is the maximum size of a secret of Secrets Manager, in bytes.
const maxSecret = 64 << 10

// secret is the environment of a container in Secrets Manager.
type secret struct {
	name  string
	owner identity.Owner // for the tags
	text  string         // for variables, a JSON object; task definitions refer to its keys
	own   bool           // for a single pod: the text may change, and the secret is deleted with the pod
}

// Format implements fmt.Formatter: a printed secret shows its name and no value.
func (s secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.name) }

// vault makes the secrets of pods. Its methods are pure functions.
type vault struct {
	config Config
	owner  identity.Owner
	key    []byte // of their names
}

// secretOf returns the secret of a container, or false if the container has no secret variables. The secret
// contains the variables from Secrets, and the variables that refer to them. The name is a keyed hash of the
// content, and only Secrets Manager has the key. So pods with the same content share one secret and one
// definition, and a reader of the name cannot try values.
func (v vault) secretOf(pod *corev1.Pod, c, resolved *corev1.Container, at *field.Path) (secret, bool, error) {
	if !hasSecrets(c) {
		return secret{}, false, nil
	}
	values, secrets := map[string]string{}, podspec.SecretVariables(c, resolved)
	for _, e := range resolved.Env {
		if !secrets[e.Name] {
			continue
		}
		if !utf8.ValidString(e.Value) {
			return secret{}, false, errdefs.InvalidInputf("%s: the value of %s is no UTF-8: Fargate gives variables as text", at.Child("env"), e.Name)
		}
		values[e.Name] = e.Value
	}
	text, err := json.Marshal(values)
	if err != nil {
		return secret{}, false, fmt.Errorf("%s: %w", at.Child("env"), err)
	}
	if len(text) > maxSecret {
		return secret{}, false, errdefs.InvalidInputf("%s: %d bytes with secrets: Secrets Manager keeps %d at most", at.Child("env"), len(text), maxSecret)
	}
	if word := podspec.SecretWord(c, resolved, at); word != nil {
		return secret{}, false, errdefs.InvalidInputf("%s: it names a variable that may be a secret, and whoever may read task definitions reads commands: let the program read its environment", word)
	}
	s := v.shared(string(text))
	if hasOwnVariables(c) {
		s.name, s.own = ownName(v.owner, pod.UID)+"-"+c.Name, true
	}
	return s, true, nil
}

// shared returns the secret with a text. All pods of the node share it.
func (v vault) shared(text string) secret {
	sum := hmac.New(sha256.New, v.key)
	sum.Write([]byte(v.owner.Cluster + "\n" + text))
	name := sharedPrefix(v.owner) + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)[:16]))
	return secret{name: name, owner: v.owner, text: text}
}

// sharedPrefix is the prefix of the secrets and definitions that pods of a node share.
func sharedPrefix(owner identity.Owner) string {
	return "vk-" + identity.Hash(owner.Cluster, owner.Node) + "-"
}

// ownPrefix is the prefix of the secrets and definitions of single pods of a node.
func ownPrefix(owner identity.Owner) string {
	return "vk-pod-" + identity.Hash(owner.Cluster, owner.Node) + "-"
}

// ownName is the name of the secret with the files of one pod. It is also the prefix of all other things of that
// pod alone.
func ownName(owner identity.Owner, uid types.UID) string {
	return ownPrefix(owner) + identity.Hash(string(uid))
}

// login returns the secret with user name and password for the registry of an image, or false if the pod has
// none: the image may be public.
func (v vault) login(in *service.Inputs, c *corev1.Container, at *field.Path) (secret, bool, error) {
	host := registry(c.Image)
	if v.config.RegistryCredentials[host] != "" || strings.Contains(host, ".dkr.ecr.") {
		return secret{}, false, nil
	}
	credential, ok := in.Login(c.Image)
	if !ok {
		return secret{}, false, nil
	}
	if credential.Username == "" || credential.Password == "" {
		return secret{}, false, errdefs.InvalidInputf("%s: the credentials for %s are a token: Fargate pulls with user name and password", at.Child("image"), host)
	}
	text, err := json.Marshal(map[string]string{"username": credential.Username, "password": credential.Password})
	if err != nil {
		return secret{}, false, err
	}
	return v.shared(string(text)), true, nil
}

// needsSecrets reports whether a pod needs Secrets Manager.
func needsSecrets(in *service.Inputs) bool {
	return len(in.Files) > 0 || len(in.Logins) > 0 ||
		slices.ContainsFunc(slices.Concat(in.Pod.Spec.InitContainers, in.Pod.Spec.Containers), func(c corev1.Container) bool { return hasSecrets(&c) })
}

// hasSecrets reports whether a variable of a container comes from a Secret.
func hasSecrets(c *corev1.Container) bool { return podspec.SecretSource(c, nil) != nil }

// saysPod reports whether a variable of a container is the name or the UID of its pod.
func saysPod(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		f := e.ValueFrom
		return f != nil && f.FieldRef != nil && (f.FieldRef.FieldPath == "metadata.name" || f.FieldRef.FieldPath == "metadata.uid")
	})
}

// hasOwnVariables reports whether the secret of a container belongs to its pod alone. A variable may contain
// both a secret and the name or UID of the pod.
func hasOwnVariables(c *corev1.Container) bool {
	return hasSecrets(c) && saysPod(c) && slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return strings.Contains(e.Value, "$(") })
}

// loginOf is the key of the login for the image of a container.
func loginOf(container string) string { return "login/" + container }

// secrets returns everything that must be in Secrets Manager before the definition of a pod: variables by
// container, files and logins. Errors are of the kind invalid-input.
func (v vault) secrets(in *service.Inputs) (map[string]secret, error) {
	out := map[string]secret{}
	err := service.Containers(in.Pod, func(c *corev1.Container, _ bool, at *field.Path) error {
		s, ok, err := v.secretOf(in.Pod, c, in.Containers[c.Name], at)
		if ok {
			out[c.Name] = s
		}
		if err != nil {
			return err
		}
		if s, ok, err = v.login(in, c, at); ok {
			out[loginOf(c.Name)] = s
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, v.addFiles(in, out)
}

// dockerHub is the registry of images without a registry in their name.
const dockerHub = "docker.io"

// registry returns the host of the registry of an image.
func registry(image string) string {
	host, rest, ok := strings.Cut(image, "/")
	if ok && rest != "" && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return host
	}
	return dockerHub
}

const (
	// filesDir is the directory of the pod's volumes in the container that writes the files.
	filesDir = "/vk-files"
	// maxPiece is the maximum number of bytes of an archive in one secret, which is a variable of that container. maxPieces is the
	// maximum number of pieces: a program starts with at most 2 MiB of variables, and a definition has 64 KiB.
	maxPiece, maxPieces = 60 << 10, 16
)

// Kinds of archives: files that many pods share, and files of one pod alone. They are prefixes of the names in
// Secrets Manager.
const (
	sharedFiles = "files/"
	ownFiles    = "own/"
)

// own reports whether the files of a volume belong to one pod: its tokens, and its downward API.
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

// hasOwn reports whether a pod has a secret that ends with the pod. Such a secret has files or variables of the
// pod alone.
func hasOwn(pod *corev1.Pod) bool { return len(ownSecrets(identity.Owner{}, pod)) > 0 }

// ownSecrets returns the names of the secrets that end with the pod.
func ownSecrets(owner identity.Owner, pod *corev1.Pod) (names []string) {
	for i := range pod.Spec.Volumes {
		if own(&pod.Spec.Volumes[i]) {
			names = append(names, ownName(owner, pod.UID))
			break
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if hasOwnVariables(&c) {
			names = append(names, ownName(owner, pod.UID)+"-"+c.Name)
		}
	}
	return names
}

// alone reports whether the definition of a pod belongs to this pod only.
func alone(pod *corev1.Pod) bool {
	return hasOwn(pod) || slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool { return saysPod(&c) })
}

// archives packs the files of a pod into two archives: files that many pods share, and files of this pod alone.
// The same files give the same bytes.
func archives(in *service.Inputs) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, kind := range []string{sharedFiles, ownFiles} {
		var packed bytes.Buffer
		zipped := gzip.NewWriter(&packed)
		to := tar.NewWriter(zipped)
		n := 0
		for i := range in.Pod.Spec.Volumes {
			v := &in.Pod.Spec.Volumes[i]
			if !podspec.Written(v) || own(v) != (kind == ownFiles) {
				continue
			}
			n++
			for _, f := range in.Files[v.Name] {
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

// pieces cuts an archive into texts that each fit into a secret.
func pieces(archive []byte) (out []string) {
	for text := base64.StdEncoding.EncodeToString(archive); text != ""; {
		n := min(len(text), maxPiece)
		out, text = append(out, text[:n]), text[n:]
	}
	return out
}

// addFiles adds the secrets with the files of a pod to out. The secrets of the pod alone are named after the
// pod, and have the files of the last attempt to create it.
func (v vault) addFiles(in *service.Inputs, out map[string]secret) error {
	archives, err := archives(in)
	if err != nil {
		return err
	}
	for kind, archive := range archives {
		for i, text := range pieces(archive) {
			s := v.shared(text)
			if kind == ownFiles {
				s.name, s.own = ownName(v.owner, in.Pod.UID), true
			}
			out[kind+strconv.Itoa(i)] = s
		}
	}
	return nil
}
