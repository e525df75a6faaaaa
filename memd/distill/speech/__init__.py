"""What a person or an agent says in a text: own words, affirmed sentences, rules and decisions."""
