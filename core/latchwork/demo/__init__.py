"""The demo: a small application that uses Latchwork as yours would.

Read ``application``, then ``inventory`` (a workflow over real files), ``shop`` (small jobs) and
``office`` (schedules, an observer, a workflow to retry).
``traffic`` is the client side and plays the operator; ``node`` is a worker in a process of its own;
``supervisor`` starts it all, and kills a node now and then.
"""
