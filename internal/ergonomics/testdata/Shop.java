package example.shop;

import java.util.ArrayList;
import java.util.List;

public class Shop {
    private final List<Order> orders = new ArrayList<>();
    private int lastNumber = 100;

    public Order open(String customer) {
        if (customer == null || customer.isEmpty()) {
            throw new IllegalArgumentException("a customer is needed");
        }
        Order order = new Order(++lastNumber, customer);
        orders.add(order);
        return order;
    }

    public List<Order> pending(int limit) {
        List<Order> found = new ArrayList<>();
        for (Order order : orders) {
            if (!order.isShipped() && found.size() < limit) {
                found.add(order);
            }
        }
        return found;
    }

    public double revenue() {
        double sum = 0;
        for (Order order : orders) {
            for (Line line : order.lines()) {
                sum += line.count() * line.price();
            }
        }
        return sum;
    }

    @Override
    public String toString() {
        return "Shop with " + orders.size() + " orders";
    }
}
