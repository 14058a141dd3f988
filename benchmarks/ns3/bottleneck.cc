// A dumbbell of one pair in ns-3: bulk TCP flows through one bottleneck whose tail-drop queue holds 1 BDP.
// Prints what the emulator's benchmark needs as one line of JSON; CPU time is measured from outside.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <iostream>

using namespace ns3;

namespace
{
constexpr uint32_t kTcpIpHeaderBytes = 52; // IPv4, TCP, time stamps
constexpr uint16_t kFirstPort = 5000;

uint64_t g_packets = 0;

bool IsData(Ptr<const Packet> packet)
{
    return packet->GetSize() > 200; // not an acknowledgement
}

void CountData(Ptr<const Packet> packet)
{
    g_packets += IsData(packet) ? 1 : 0;
}
} // namespace

int main(int argc, char* argv[])
{
    uint64_t rate_bps = 100'000'000;
    uint64_t rtt_ns = 20'000'000;
    uint32_t mtu_bytes = 1500;
    uint32_t flows = 1;
    double seconds = 5;
    std::string cca = "TcpCubic";
    CommandLine command_line(__FILE__);
    command_line.AddValue("rate", "bottleneck, bit/s", rate_bps);
    command_line.AddValue("rtt", "propagation round trip, ns", rtt_ns);
    command_line.AddValue("mtu", "bytes of an IP packet", mtu_bytes);
    command_line.AddValue("flows", "bulk flows", flows);
    command_line.AddValue("seconds", "simulated time", seconds);
    command_line.AddValue("cca", "TcpCubic or TcpBbr", cca);
    command_line.Parse(argc, argv);

    const uint64_t bdp_bytes = rate_bps / 8 * rtt_ns / 1'000'000'000;
    const uint32_t window_bytes = std::min<uint64_t>(4 * bdp_bytes, 1'000'000'000);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + cca)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mtu_bytes - kTcpIpHeaderBytes));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(window_bytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(window_bytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));

    NodeContainer nodes;
    nodes.Create(3); // sender, switch, receiver
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(10 * rate_bps)));
    access.SetDeviceAttribute("Mtu", UintegerValue(mtu_bytes));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
    PointToPointHelper trunk;
    trunk.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate_bps)));
    trunk.SetDeviceAttribute("Mtu", UintegerValue(mtu_bytes));
    trunk.SetChannelAttribute("Delay", TimeValue(NanoSeconds(rtt_ns / 2)));
    trunk.SetQueue("ns3::DropTailQueue", "MaxSize",
                   StringValue(std::to_string(std::max<uint64_t>(bdp_bytes, 10 * mtu_bytes)) + "B"));
    NetDeviceContainer first = access.Install(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer second = trunk.Install(nodes.Get(1), nodes.Get(2));

    InternetStackHelper().Install(nodes);
    // The device's own queue is the buffer: no queue discipline above it.
    Ipv4AddressHelper addresses("10.0.1.0", "255.255.255.0");
    addresses.Assign(first);
    addresses.SetBase("10.0.2.0", "255.255.255.0");
    Ipv4InterfaceContainer far = addresses.Assign(second);
    TrafficControlHelper queues;
    queues.Uninstall(first);
    queues.Uninstall(second);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    ApplicationContainer sinks;
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        const InetSocketAddress to(far.GetAddress(1), kFirstPort + flow);
        BulkSendHelper sender("ns3::TcpSocketFactory", to);
        sender.SetAttribute("SendSize", UintegerValue(131'072));
        sender.Install(nodes.Get(0)).Start(Seconds(0));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kFirstPort + flow));
        sinks.Add(sink.Install(nodes.Get(2)));
    }
    second.Get(0)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountData));
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    uint64_t received = 0;
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        received += DynamicCast<PacketSink>(sinks.Get(flow))->GetTotalRx();
    }
    std::cout << "{\"packets\": " << g_packets << ", \"received_bytes\": " << received
              << ", \"seconds\": " << seconds << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
