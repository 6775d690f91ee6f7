"""What a campaign is: its states, its settings, what everybody may see of it, and who may do what when. No input or
output happens here."""
