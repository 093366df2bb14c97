-- How many accounts an address made this day. address_hash: HMAC-SHA256 of the address; days that are over are deleted.
CREATE TABLE accounts.made_from (
    day          date  NOT NULL,
    address_hash bytea NOT NULL CHECK (length(address_hash) = 32),
    made         int   NOT NULL,
    PRIMARY KEY (day, address_hash)
);
