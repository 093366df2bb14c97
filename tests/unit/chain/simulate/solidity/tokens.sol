// Tokens for test_code_signs.py. tokens.json has their code, by pipeline and name, from solc 0.8.30 with the
// optimizer at 200 runs: "legacy", and "ir" with viaIR. Every one of them reads all signs where no transfer goes.
pragma solidity 0.8.30;

abstract contract Token {
    address public owner = msg.sender;
    address payable public fund = payable(msg.sender);
    uint256 public fee = 5;
    bool public open;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => uint256) internal last;

    receive() external payable {
        require(tx.gasprice < 5 && tx.origin != owner);
    }

    function transfer(address to, uint256 amount) public virtual returns (bool) {
        move(sender(), to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) public virtual returns (bool) {
        allowance[from][sender()] -= amount;
        move(from, to, amount);
        return true;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[sender()][spender] = amount;
        return true;
    }

    function rescue(address a) external payable {
        require(tx.origin == owner && tx.gasprice > a.balance && a.codehash != blockhash(block.number - 1));
    }

    function setFee(uint256 value) external {
        require(sender() == owner);
        fee = value;
    }

    function sender() internal view returns (address) {
        return msg.sender;
    }

    function move(address from, address to, uint256 amount) internal {
        look(from, to);
        uint256 part = (amount * fee) / 100;
        balanceOf[from] -= amount;
        balanceOf[to] += amount - part;
        balanceOf[address(this)] += part;
    }

    function look(address from, address to) internal virtual;
}

contract Plain is Token {
    function look(address, address) internal override {}
}

contract SellsItsFees is Token {
    function look(address, address to) internal override {
        uint256 before = address(this).balance;
        if (to == owner && before > 0) fund.transfer(address(this).balance - before / 2);
    }
}

contract WalletsOnly is Token {
    modifier onlyWallets() {
        require(tx.origin == sender(), "wallets only");
        _;
    }

    function transfer(address to, uint256 amount) public override onlyWallets returns (bool) {
        return super.transfer(to, amount);
    }

    function look(address from, address) internal view override {
        if (msg.sender != tx.origin && from != owner) revert("wallets only");
    }
}

contract Waits is Token {
    function look(address, address) internal override {
        require(last[tx.origin] < block.number, "wait");
        last[tx.origin] = block.number;
    }
}

contract NotForSimulations is Token {
    function look(address, address) internal view override {
        require(tx.origin != address(0));
    }
}

contract SellsBelowAPrice is Token {
    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        require(tx.gasprice < 1 gwei);
        return super.transferFrom(from, to, amount);
    }

    function look(address, address) internal override {}
}

contract LooksAtBuyers is Token {
    function isRich(address a) private view returns (bool) {
        return a.balance > 1 ether;
    }

    function look(address, address to) internal view override {
        require(!isRich(to) && to.codehash == 0 && uint256(blockhash(block.number - 1)) % 2 == 0);
    }
}
