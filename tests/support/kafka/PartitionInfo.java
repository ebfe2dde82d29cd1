package org.apache.kafka.common;

/** As Kafka's, but for replicas. */
public record PartitionInfo(String topic, int partition) {}
