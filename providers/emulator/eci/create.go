// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// maxParts is the maximum number of containers, and of volumes, of a group.
const maxParts = 20

// createGroup makes a group, or finds the group of the same token.
func (s *Server) createGroup(r *http.Request, form url.Values) (object, error) {
	f := fields(form)
	if err := s.mayCreate(f); err != nil {
		return nil, err
	}
	if err := brokenRule(f); err != nil {
		return nil, err
	}
	spec, files, err := podOf(f)
	if err != nil {
		return nil, err
	}
	g, found, err := s.registerGroup(f, spec, files)
	if err != nil || found {
		return object{"ContainerGroupId": idOf(g)}, err
	}
	if err := s.start(r.Context(), g, g.id); err != nil {
		s.forgetGroup(g)
		if errdefs.IsInvalidInput(err) {
			return nil, newFailure(http.StatusBadRequest, "InvalidParameter", "%v", err)
		}
		return nil, err
	}
	return object{"ContainerGroupId": g.id}, nil
}

// start runs the containers of a group, as a group of the fleet with the ID run.
func (s *Server) start(ctx context.Context, g *group, run string) error {
	out := emulator.Group{ID: run, Spec: *g.spec.DeepCopy(), Files: map[string]map[string][]byte{}} // the names of files are unique among groups
	for i := range out.Spec.Volumes {
		if from := out.Spec.Volumes[i].Secret; from != nil {
			from.SecretName = run + "." + out.Spec.Volumes[i].Name
			out.Files[from.SecretName] = g.files[out.Spec.Volumes[i].Name]
		}
	}
	return s.Fleet.Start(ctx, out)
}

func idOf(g *group) string {
	if g == nil {
		return ""
	}
	return g.id
}

// mayCreate checks the things outside the group.
func (s *Server) mayCreate(f fields) error {
	for id := range strings.SplitSeq(f.textOf("VSwitchId"), ",") {
		if s.VSwitches != nil && !slices.Contains(s.VSwitches, id) {
			return newFailure(http.StatusNotFound, "InvalidVSwitchId.NotFound", "the switch %s is not there", id)
		}
	}
	if id := f.textOf("SecurityGroupId"); s.SecurityGroups != nil && !slices.Contains(s.SecurityGroups, id) {
		return newFailure(http.StatusNotFound, "InvalidSecurityGroupId.NotFound", "the security group %s is not there", id)
	}
	for _, name := range []string{"Container", "InitContainer", "Volume"} {
		if n := len(f.list(name)); n > maxParts {
			return newFailure(http.StatusBadRequest, "InvalidParameter", "%d of %s, and %d are the most", n, name, maxParts)
		}
	}
	return nil
}

// registerGroup adds the group, or finds the group of the same token.
func (s *Server) registerGroup(f fields, spec corev1.PodSpec, files map[string]map[string][]byte) (g *group, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := f.textOf("ClientToken")
	for _, g := range s.groups {
		if token != "" && g.token == token {
			if !reflect.DeepEqual(g.form, url.Values(f)) {
				return nil, false, newFailure(http.StatusBadRequest, "IdempotentParameterMismatch", "the token was used with other parameters")
			}
			return g, true, nil
		}
	}
	if id, lost := s.tokens[token]; lost && token != "" { // the group of the token was deleted
		return &group{id: id}, true, nil
	}
	for _, id := range diskIDs(f) {
		for _, other := range s.groups {
			if id != "" && slices.Contains(diskIDs(fields(other.form)), id) { // diskPage: a disk is mounted to one instance at a time; the code is not published
				return nil, false, newFailure(http.StatusForbidden, "InvalidOperation.DiskInUse", "the disk %s is mounted to %s", id, other.id)
			}
		}
	}
	if s.Quota > 0 && len(s.groups) >= s.Quota {
		return nil, false, newFailure(http.StatusForbidden, "QuotaExceeded", "the account has %d container groups, and may have no more", s.Quota)
	}
	if f.isTrue("DryRun") {
		return nil, false, newFailure(http.StatusBadRequest, "DryRunOperation", "Request validation has been passed with DryRun flag set.")
	}
	s.made++
	g = &group{
		id: fmt.Sprintf("eci-%010d", s.made), name: f.textOf("ContainerGroupName"), token: token, form: url.Values(f),
		tags: map[string]string{}, created: time.Now(), changed: time.Now(), spec: spec, files: files,
	}
	g.run = g.id
	for _, t := range f.list("Tag") {
		g.tags[t.textOf("Key")] = t.textOf("Value")
	}
	s.groups = append(s.groups, g)
	if s.tokens == nil {
		s.tokens = map[string]string{}
	}
	s.tokens[token] = g.id
	return g, false, nil
}

// podOf returns the pod behind a group.
func podOf(f fields) (spec corev1.PodSpec, files map[string]map[string][]byte, err error) {
	spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicy(f.textOf("RestartPolicy")), Hostname: f.textOf("HostName"),
		TerminationGracePeriodSeconds: f.optionalNumber("TerminationGracePeriodSeconds"),
	}
	for _, c := range f.list("InitContainer") {
		spec.InitContainers = append(spec.InitContainers, containerOf(c))
	}
	for _, c := range f.list("Container") {
		spec.Containers = append(spec.Containers, containerOf(c))
	}
	files = map[string]map[string][]byte{}
	for _, v := range f.list("Volume") {
		out := corev1.Volume{Name: v.textOf("Name")}
		switch kind := v.textOf("Type"); kind {
		case "EmptyDirVolume", "NFSVolume", "FlexVolume": // the emulator has neither a network file system nor disks
			out.EmptyDir = &corev1.EmptyDirVolumeSource{}
		case "ConfigFileVolume":
			data := map[string][]byte{}
			out.Secret = &corev1.SecretVolumeSource{}
			for n, file := range v.partOf("ConfigFileVolume").list("ConfigFileToPath") {
				key := "file-" + strconv.Itoa(n)
				if data[key], err = base64.StdEncoding.DecodeString(file.textOf("Content")); err != nil {
					return spec, nil, newFailure(http.StatusBadRequest, "InvalidParameter", "volume %s: the content of %s is no base64", out.Name, file.textOf("Path"))
				}
				item := corev1.KeyToPath{Key: key, Path: file.textOf("Path")}
				if mode, err := strconv.ParseInt(file.textOf("Mode"), 8, 32); err == nil { // brokenRule has validated it
					item.Mode = new(int32(mode))
				}
				out.Secret.Items = append(out.Secret.Items, item)
			}
			files[out.Name] = data
		default:
			return spec, nil, newFailure(http.StatusBadRequest, "InvalidParameter", "volume %s: type %s", out.Name, kind)
		}
		spec.Volumes = append(spec.Volumes, out)
	}
	return spec, files, nil
}

func containerOf(f fields) corev1.Container {
	c := corev1.Container{
		Name: f.textOf("Name"), Image: f.textOf("Image"), ImagePullPolicy: corev1.PullPolicy(f.textOf("ImagePullPolicy")), WorkingDir: f.textOf("WorkingDir"),
		Command: f.textsOf("Command"), Args: f.textsOf("Arg"),
		TerminationMessagePath: f.textOf("TerminationMessagePath"),
		LivenessProbe:          probeOf(f.partOf("LivenessProbe")), ReadinessProbe: probeOf(f.partOf("ReadinessProbe")),
	}
	for _, v := range f.list("EnvironmentVar") {
		e := corev1.EnvVar{Name: v.textOf("Key"), Value: v.textOf("Value")}
		if v.hasField("FieldRef.FieldPath") {
			e.Value = "127.0.0.1" // every group has this address
		}
		c.Env = append(c.Env, e)
	}
	for _, m := range f.list("VolumeMount") {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: m.textOf("Name"), MountPath: m.textOf("MountPath"), SubPath: m.textOf("SubPath"), ReadOnly: m.isTrue("ReadOnly")})
	}
	for _, p := range f.list("Port") {
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: int32(p.numberOf("Port")), Protocol: corev1.Protocol(p.textOf("Protocol"))})
	}
	if s := f.partOf("SecurityContext"); len(s) > 0 || f.hasField("SecurityContextRunAsGroup") || f.hasField("SecurityContextRunAsNonRoot") {
		c.SecurityContext = &corev1.SecurityContext{RunAsUser: s.optionalNumber("RunAsUser"), RunAsGroup: f.optionalNumber("SecurityContextRunAsGroup")}
		if s.isTrue("ReadOnlyRootFilesystem") {
			c.SecurityContext.ReadOnlyRootFilesystem = new(true)
		}
	}
	if post, stop := hookOf(f, "PostStart"), hookOf(f, "PreStop"); post != nil || stop != nil {
		c.Lifecycle = &corev1.Lifecycle{PostStart: post, PreStop: stop}
	}
	return c
}

func probeOf(f fields) *corev1.Probe {
	if len(f) == 0 {
		return nil
	}
	p := &corev1.Probe{
		InitialDelaySeconds: int32(f.numberOf("InitialDelaySeconds")), PeriodSeconds: int32(f.numberOf("PeriodSeconds")), TimeoutSeconds: int32(f.numberOf("TimeoutSeconds")),
		SuccessThreshold: int32(f.numberOf("SuccessThreshold")), FailureThreshold: int32(f.numberOf("FailureThreshold")),
	}
	switch {
	case f.hasField("HttpGet.Port"):
		p.HTTPGet = &corev1.HTTPGetAction{Path: f.textOf("HttpGet.Path"), Port: intstr.FromInt32(int32(f.numberOf("HttpGet.Port"))), Scheme: corev1.URIScheme(f.textOf("HttpGet.Scheme"))}
	case f.hasField("TcpSocket.Port"):
		p.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(int32(f.numberOf("TcpSocket.Port")))}
	default:
		p.Exec = &corev1.ExecAction{Command: f.partOf("Exec").textsOf("Command")}
	}
	return p
}

// hookOf returns the command hook of a container. Other hooks do not run here.
func hookOf(f fields, which string) *corev1.LifecycleHandler {
	command := f.textsOf("Lifecycle" + which + "HandlerExec")
	if command == nil {
		return nil
	}
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}
}
