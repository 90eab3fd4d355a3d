"""What is told of hardware: devices, pools and slices, classes, patches, rules, nodes.

Belongs here: reasons about one such object, from views and events. Does not belong here: pods and
claims, which are beside this package. Imported by the service that explains.
"""
