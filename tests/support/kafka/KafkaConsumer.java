package org.apache.kafka.clients.consumer;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Answers as Kafka's client does, of a folder in place of brokers (tests/support/kafka/__init__.py). */
public class KafkaConsumer {
    private final Path folder;

    public KafkaConsumer(Map<String, Object> properties) {
        for (String name : List.of("key.deserializer", "value.deserializer", "isolation.level")) {
            if (!properties.containsKey(name)) {
                throw new IllegalArgumentException(name);
            }
        }
        folder = Path.of((String) properties.get("bootstrap.servers"));
    }

    public List<PartitionInfo> partitionsFor(String topic) {
        List<PartitionInfo> found = new ArrayList<>();
        File[] partitions = folder.resolve(topic).toFile().listFiles(File::isDirectory);
        for (File partition : partitions == null ? new File[0] : partitions) {
            found.add(new PartitionInfo(topic, Integer.parseInt(partition.getName())));
        }
        return found;
    }

    public Map<TopicPartition, Long> beginningOffsets(Collection<TopicPartition> partitions) {
        return offsets(partitions, "first");
    }

    public Map<TopicPartition, Long> endOffsets(Collection<TopicPartition> partitions) {
        return offsets(partitions, "end");
    }

    public void close() {}

    private Map<TopicPartition, Long> offsets(Collection<TopicPartition> partitions, String which) {
        Map<TopicPartition, Long> found = new HashMap<>();
        for (TopicPartition partition : partitions) {
            Path file = folder.resolve(partition.topic() + "/" + partition.partition() + "/" + which);
            try {
                found.put(partition, Long.parseLong(Files.readString(file).strip()));
            } catch (IOException error) {
                throw new RuntimeException(error);
            }
        }
        return found;
    }
}
