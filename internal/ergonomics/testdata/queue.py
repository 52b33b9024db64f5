"""A queue that remembers what it gave out."""
import heapq
import logging
from itertools import count

log = logging.getLogger("queue")


class Queue:
    """Items by priority; equal ones in order of arrival."""

    def __init__(self, limit=128):
        self._heap = []
        self._arrivals = count()
        self.limit = limit
        self.given_out = {}

    def push(self, item, priority=0):
        if len(self._heap) >= self.limit:
            raise OverflowError("the queue is full: %d items" % self.limit)
        entry = (priority, next(self._arrivals), item)
        heapq.heappush(self._heap, entry)
        log.debug("pushed %r with priority %d", item, priority)

    def pop(self):
        while self._heap:
            priority, arrival, item = heapq.heappop(self._heap)
            if item not in self.given_out:
                self.given_out[item] = arrival
                return item
            log.warning("skipped a doubled item: %r", item)
        return None

    def rescore(self, weights):
        fresh = []
        for priority, arrival, item in self._heap:
            for name, weight in weights.items():
                if name in item:
                    priority += weight
                else:
                    priority -= 1
            fresh.append((priority, arrival, item))
        heapq.heapify(fresh)
        self._heap = fresh

    def describe(self):
        text = """Waiting:
  first: {first}
  total: {total}
"""
        return text.format(first=self._heap[:1], total=len(self._heap))

    def drain(self, sink, batch=16):
        done = 0
        while self._heap and done < batch:
            item = self.pop()
            if item is None:
                break
            try:
                sink.accept(item)
            except ValueError as err:
                log.error("sink refused %r: %s", item, err)
                continue
            done += 1
        return done
