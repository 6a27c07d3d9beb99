"""The MQTT door: asks that come by a broker, and their answers (NET-6)."""
