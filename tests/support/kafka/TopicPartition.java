package org.apache.kafka.common;

/** As Kafka's. */
public record TopicPartition(String topic, int partition) {}
