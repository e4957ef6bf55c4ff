// SPDX-License-Identifier: BSD-3-Clause

// Sends 500 frames and reads all figures by gosnappi; its check of versions is on.
//
//	by-gosnappi URL
//
// Prints what the client was told, as one JSON document.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/open-traffic-generator/snappi/gosnappi"
)

const (
	frames  = 500
	size    = 128
	timeout = 15 * time.Second
)

func configured() gosnappi.Config {
	config := gosnappi.NewConfig()
	config.Ports().Add().SetName("p1").SetLocation("ring:r")
	config.Captures().Add().SetName("c").SetPortNames([]string{"p1"}).SetFormat(gosnappi.CaptureFormat.PCAPNG)
	config.Layer1().Add().SetName("l").SetPortNames([]string{"p1"}).
		SetSpeed(gosnappi.Layer1Speed.SPEED_1_GBPS).SetAutoNegotiate(false)
	config.Options().PortOptions().SetLocationPreemption(true)
	flow := config.Flows().Add().SetName("f")
	flow.TxRx().Port().SetTxName("p1").SetRxNames([]string{"p1"})
	ethernet := flow.Packet().Add().Ethernet()
	ethernet.Src().SetValue("02:00:00:00:00:01")
	ethernet.Dst().SetValue("02:00:00:00:00:02")
	flow.Packet().Add().Vlan().Id().SetValue(7)
	ip := flow.Packet().Add().Ipv4()
	ip.Src().Increment().SetStart("198.18.0.1").SetCount(100)
	ip.Dst().SetValues([]string{"198.19.0.1", "198.19.0.2"})
	flow.Packet().Add().Udp().DstPort().SetValue(9)
	flow.Size().SetFixed(size)
	flow.Rate().SetPps(5000)
	flow.Duration().FixedPackets().SetPackets(frames)
	flow.Metrics().SetEnable(true).SetLoss(true).Latency().SetEnable(true)
	return config
}

func capture(api gosnappi.Api, state gosnappi.StatePortCaptureStateEnum) error {
	control := gosnappi.NewControlState()
	control.Port().Capture().SetState(state)
	_, err := api.SetControlState(control)
	return err
}

func run(url string) (map[string]any, error) {
	api := gosnappi.NewApi()
	api.NewHttpTransport().SetLocation(url)
	api.SetVersionCompatibilityCheck(true)
	warning, err := api.SetConfig(configured())
	if err != nil {
		return nil, err
	}
	if err := capture(api, gosnappi.StatePortCaptureState.START); err != nil {
		return nil, err
	}
	control := gosnappi.NewControlState()
	control.Traffic().FlowTransmit().SetState(gosnappi.StateTrafficFlowTransmitState.START)
	if _, err := api.SetControlState(control); err != nil {
		return nil, err
	}
	request := gosnappi.NewMetricsRequest()
	request.Flow()
	var flow gosnappi.FlowMetric
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		response, err := api.GetMetrics(request)
		if err != nil {
			return nil, err
		}
		flow = response.FlowMetrics().Items()[0]
		if flow.Transmit() == gosnappi.FlowMetricTransmit.STOPPED && flow.FramesRx() == frames {
			break
		}
	}
	if err := capture(api, gosnappi.StatePortCaptureState.STOP); err != nil {
		return nil, err
	}
	captured, err := api.GetCapture(gosnappi.NewCaptureRequest().SetPortName("p1"))
	if err != nil {
		return nil, err
	}
	request = gosnappi.NewMetricsRequest()
	request.Port()
	response, err := api.GetMetrics(request)
	if err != nil {
		return nil, err
	}
	port := response.PortMetrics().Items()[0]
	config, err := api.GetConfig()
	if err != nil {
		return nil, err
	}
	before, _ := configured().Marshal().ToJson()
	after, _ := config.Marshal().ToJson()
	return map[string]any{
		"release":  api.GetLocalVersion().ApiSpecVersion(),
		"warnings": warning.Warnings(),
		"same":     before == after,
		"flow": map[string]any{
			"transmit": string(flow.Transmit()), "frames_tx": flow.FramesTx(), "frames_rx": flow.FramesRx(),
			"bytes_rx": flow.BytesRx(), "loss": flow.Loss(),
		},
		"port":     map[string]any{"frames_rx": port.FramesRx(), "last_change": port.LastChange()},
		"captured": len(captured),
	}, nil
}

func main() {
	told, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		os.Exit(1)
	}
}
