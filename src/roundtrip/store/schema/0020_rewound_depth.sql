-- from_number: the newest block that was taken away; null: noted before it was kept.
ALTER TABLE facts.rewound ADD COLUMN from_number int;
